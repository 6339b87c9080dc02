-- Uploads of fresh reports to groups whose round stays open, for wrk. Nothing is asked while it runs.
-- Arguments: study (hex), reports an upload, "mixed" or "apart", then of each group what follows an id (9 bytes, hex).

local random = io.open("/dev/urandom", "rb")
local threads = {}

function setup(thread)
  thread:set("number", #threads)
  table.insert(threads, thread)
end

local function plain(hex)
  return (hex:gsub("..", function(pair) return string.char(tonumber(pair, 16)) end))
end

function init(args)
  study, each, mixed = plain(args[1]), tonumber(args[2]), args[3] == "mixed"
  tails, accepted, refused, turn = {}, 0, 0, number
  for k = 4, #args do
    table.insert(tails, "%0" .. plain(args[k]):gsub("%%", "%%%%"))
  end
end

local function reports(count, tail)
  return (random:read(16 * count):gsub("................", tail))
end

function request()
  local parts = { study }
  if mixed then
    for k, tail in ipairs(tails) do
      parts[k + 1] = reports(each / #tails, tail)
    end
  else
    turn = turn % #tails + 1
    parts[2] = reports(each, tails[turn])
  end
  return wrk.format("POST", "/v1/reports", nil, table.concat(parts))
end

function response(status, headers, body)
  local kept = body:match('"accepted":(%d+)')
  if kept then
    accepted, refused = accepted + tonumber(kept), refused + each - tonumber(kept)
  end
end

function done(summary, latency, requests)
  local kept, lost = 0, 0
  for _, thread in ipairs(threads) do
    kept, lost = kept + thread:get("accepted"), lost + thread:get("refused")
  end
  local wrong = summary.errors
  io.write(string.format(
    '\nFOUND {"seconds":%.4f,"accepted":%d,"refused":%d,"p50":%.3f,"p99":%.3f,"failed":%d}\n',
    summary.duration / 1e6, kept, lost, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    wrong.connect + wrong.read + wrong.write + wrong.status + wrong.timeout))
end
