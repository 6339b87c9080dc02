"""How the report looks: on a screen, light or dark, wide or narrow, and on paper."""

STYLE = """
:root { color-scheme: light dark; --page: #fdfdfb; --ink: #1c1e21; --soft: #5d6470; --line: #dcdfe3; --box: #f3f4f2;
  --link: #0b5a8f; --ours: #fdf0e4; --ours-ink: #9a3f00; --off: #f9d4cf; --off-ink: #96140a; --known: #fbefc4;
  --known-ink: #6b5200; --good: #2f7d57; --rest: #e3c15a; --bad: #c8372b; }
@media (prefers-color-scheme: dark) { :root { --page: #15171a; --ink: #e4e6e8; --soft: #9aa2ad; --line: #333840;
  --box: #1e2125; --link: #7cc0ee; --ours: #33251a; --ours-ink: #ffb27a; --off: #4d1d19; --off-ink: #ffb4ab;
  --known: #3d3415; --known-ink: #f0d98c; --good: #57b98a; --rest: #b1923a; --bad: #e0665b; }
  figure img { filter: brightness(.9); } }
* { box-sizing: border-box; }
html { scroll-behavior: smooth; }
body { margin: 0 auto; padding: 2.5rem 1.5rem 5rem; max-width: 78rem; background: var(--page); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
p, ul, dl { max-width: 46rem; }
h1 { font-size: 2rem; line-height: 1.2; margin: 0 0 .4rem; letter-spacing: -.01em; }
h2 { font-size: 1.45rem; margin: 4rem 0 .4rem; padding-top: .8rem; border-top: 3px solid var(--ink); }
h4 { margin: 1.8rem 0 .2rem; font-size: 1rem; } h4 + p { margin: 0; }
h3 { font-size: 1.12rem; margin: 0 0 .3rem; }
a { color: var(--link); text-decoration: none; } a:hover { text-decoration: underline; }
.soft { color: var(--soft); font-size: .9rem; }
.sums { display: flex; flex-wrap: wrap; gap: 2.2rem; margin: 1.6rem 0 1rem; padding: 0; list-style: none;
  max-width: none; }
.sums b { display: block; font-size: 2.1rem; line-height: 1.1; font-variant-numeric: tabular-nums; }
.sums span { color: var(--soft); font-size: .9rem; }
.bar { display: flex; height: .55rem; border-radius: .3rem; overflow: hidden; background: var(--line);
  min-width: 7rem; }
.bar i { display: block; } .bar .good { background: var(--good); } .bar .rest { background: var(--rest); }
.bar .bad { background: var(--bad); }
article { margin: 2.6rem 0 3.4rem; padding-top: 1.1rem; border-top: 1px solid var(--line); }
article > p { margin: .5rem 0; }
.facts { display: flex; flex-wrap: wrap; gap: .2rem 1.4rem; margin: .5rem 0; padding: 0; list-style: none;
  color: var(--soft); font-size: .9rem; max-width: none; }
.verdict { font-weight: 600; }
figure { margin: 1.2rem 0; } figure img { max-width: 100%; height: auto; border-radius: .4rem; background: #fff;
  border: 1px solid var(--line); padding: .5rem; }
.scroll { overflow: auto; max-height: 80vh; border: 1px solid var(--line); border-radius: .4rem; margin: 1rem 0;
  width: fit-content; max-width: 100%; }
table { border-collapse: separate; border-spacing: 0; font-size: .86rem; font-variant-numeric: tabular-nums; }
.scroll th, .scroll td { padding: .16rem .55rem; white-space: nowrap; background: var(--page); }
thead th { position: sticky; top: 0; z-index: 2; font-weight: 600; text-align: right;
  background: var(--box) !important; }
thead th { height: 1.75rem; line-height: 1.3rem; }
thead tr + tr th { top: 1.75rem; font-weight: 500; border-bottom: 1px solid var(--line); }
thead th.group { text-align: left; border-left: 1px solid var(--line); }
th.place, th.which { position: sticky; text-align: left; font-weight: 500; z-index: 1; vertical-align: top; }
th.place { left: 0; width: var(--places); min-width: var(--places); }
th.place span { display: inline-block; padding-right: 1.2ch; }
th.which { left: var(--places); color: var(--soft); font-weight: 400; border-right: 1px solid var(--line); }
thead th.place, thead th.which { z-index: 3; }
td { text-align: right; } td.edge { border-left: 1px solid var(--line); }
tbody:nth-of-type(n + 2) > tr:first-child > * { border-top: 1px solid var(--line); }
tr.print td { color: var(--soft); }
.scroll td small { display: inline-block; min-width: 3.1em; margin-left: .35em; color: var(--soft); font-size: .82em; }
.scroll .default { background: var(--ours); color: var(--ours-ink);
  } thead th.default { background: var(--ours) !important; }
.scroll td.off, .scroll td.off small { background: var(--off); color: var(--off-ink); }
.scroll td.known, .scroll td.known small { background: var(--known); color: var(--known-ink); }
.contents { width: 100%; max-width: 62rem; margin: .4rem 0 1.4rem; }
.contents td, .contents th { padding: .22rem .7rem .22rem 0; border-bottom: 1px solid var(--line); text-align: left; }
.contents td.count, .contents th.count { text-align: right; white-space: nowrap; }
.key span { padding: 0 .45em; border-radius: .2em; } .key .off { background: var(--off); color: var(--off-ink); }
.key .known { background: var(--known); color: var(--known-ink); } .key .default { background: var(--ours);
  color: var(--ours-ink); }
details { margin: .8rem 0; } summary { cursor: pointer; color: var(--link); }
dl { margin: .6rem 0; font-size: .9rem; } dt { font-weight: 600; } dd { margin: 0 0 .4rem 1.2rem; }
@media (max-width: 46rem) { body { padding: 1.2rem .8rem 3rem; } th.place, th.which { position: static; }
  h1 { font-size: 1.5rem; } .contents .wide { display: none; } }
@page { size: A4 landscape; margin: 12mm; }
@media print { :root { --page: #fff; --ink: #000; --box: #f4f4f4; } body { padding: 0; max-width: none;
  font-size: 9.5pt; }
  .scroll { max-height: none; overflow: visible; border: 0; } thead th, th.place, th.which { position: static; }
  table { font-size: 7pt; } article, tbody, figure { break-inside: avoid-page; } h2, h3 { break-after: avoid; }
  a { color: inherit; } * { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
"""
