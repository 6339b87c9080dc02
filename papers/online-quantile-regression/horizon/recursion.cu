// The recursion of the paper at its own horizon of 3e8 people, one thread a chain, on a CUDA device.
//
// The same law as sottovoce.sim.regression (single.py, block.py): randomised response speaks the truth with probability
// kappa and any letter otherwise; a response lies below the fit if u <= sigmoid(logit tau + 2 x'delta). Dice are
// xoshiro128++; chances hold within 2^-23, covariates and roundings have 16 bits each. Points are distances from the truth.
//
// Usage: recursion cells.txt MODE PEOPLE REPLICATIONS SEED OUT, where MODE is sn, dc, or a tree such as 4,4.
// Writes OUT.avg (float64, averages less the truth) and, for sn, OUT.norm (self-normalisers) and OUT.paths (averages at
// the horizons), cell after cell, replication after replication.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

constexpr int MOST = 9, GRID = 16, THREADS = 64, LOOKS = 10000, KINDS = 8;
constexpr double REACH = 10.0, POWER = 0.65, OFFSET = 300.0;

struct Cell {
  int d, q, s;
  double tau, scale, out, in;
  double face[2], within[2 * GRID], alone[GRID], beta[MOST];
};
struct Dice { uint32_t a, b, c, d; };

__device__ inline uint32_t turned(uint32_t x, int k) { return (x << k) | (x >> (32 - k)); }
__device__ inline uint32_t roll(Dice &s) {
  const uint32_t word = turned(s.a + s.d, 7) + s.a, shifted = s.b << 9;
  s.c ^= s.a; s.d ^= s.b; s.b ^= s.c; s.a ^= s.d; s.c ^= shifted; s.d = turned(s.d, 11);
  return word;
}
__device__ inline uint64_t mixed(uint64_t &x) {
  uint64_t z = (x += 0x9e3779b97f4a7c15ull);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}
__device__ inline float unit(uint32_t word) { return __uint_as_float(0x3f800000u | (word >> 9)) - (1.0f - 0x1p-24f); }
__device__ inline float half_unit(uint32_t bits) { return __uint_as_float(0x3f800000u | (bits << 7)) - (1.0f - 0x1p-17f); }
__device__ inline uint32_t part(double chance) { return chance >= 1.0 ? 0xffffffffu : (uint32_t)(chance * 0x1p32); }

// One block serves one cell; chain c of a cell has its state at [place + c].
struct Work {
  const Cell *cells;
  const int *cell_of_block, *first_of_block, *chains_of_cell;
  const long long *place_of_cell;  // first chain of a cell in the state arrays
  double *point, *total, *sums;    // [chain][MOST], [chain][MOST], [chain][63] or null
  uint32_t *dice;
  const double *from;              // the points that the parents ended at, or null: begin at zero coefficients
  const long long *from_place;
  int branching, nodes;            // children of a parent, and nodes of this level
  uint64_t seed;
  long long done, steps;           // steps a chain has taken before this launch, and to take now
  const long long *limit_of_cell;  // people of a chain
  const long long *time_of_cell;   // step time at which a chain begins
  int begin;
};

// Steps are taken in stretches of at most 32, in single precision as distances from where the stretch began; where it
// ends, point and total are brought forward in double precision. The power in the step is linear over 32 steps.
struct Stretch { long long end; float base, slope; int offset, length; };
__device__ inline Stretch stretch(long long l, long long stop, long long time) {
  const long long i = time + l;
  Stretch s;
  if (i < 4096) {
    s.base = powf((float)(i + 1), (float)POWER); s.slope = 0.0f; s.offset = 0; s.end = l + 1;
  } else {
    const long long anchor = i & ~31ll;
    const double first = pow((double)anchor, POWER);
    s.base = (float)first; s.slope = (float)((pow((double)(anchor + 32), POWER) - first) / 32);
    s.offset = (int)(i - anchor); s.end = anchor + 32 - time;
  }
  s.end = min(s.end, stop);
  s.length = (int)(s.end - l);
  return s;
}

// A report tells of one coordinate (SINGLE) or of a block of s of the D, or the exact score (q = 0).
template <int D, bool SINGLE> __global__ void __launch_bounds__(THREADS) advance(Work w) {
  const int which = w.cell_of_block[blockIdx.x];
  const int chain = w.first_of_block[blockIdx.x] + threadIdx.x;
  if (chain >= w.chains_of_cell[which]) return;
  const Cell &cell = w.cells[which];
  const long long at = w.place_of_cell[which] + chain;
  const int q = cell.q, s = cell.s;
  __shared__ float values[3 * GRID + 2];  // alone, within, face
  __shared__ float spot[SINGLE ? D * THREADS : 1], area[SINGLE ? D * THREADS : 1];
  if (threadIdx.x < GRID) {
    values[threadIdx.x] = (float)cell.alone[threadIdx.x];
    values[GRID + threadIdx.x] = (float)cell.within[threadIdx.x];
    values[2 * GRID + threadIdx.x] = (float)cell.within[GRID + threadIdx.x];
    if (threadIdx.x < 2) values[3 * GRID + threadIdx.x] = (float)cell.face[threadIdx.x];
  }
  __syncthreads();
  float *mine = spot + threadIdx.x, *swept = area + threadIdx.x;
  double point[D], total[D];
  Dice dice;
  if (w.begin) {
    uint64_t x0 = w.seed * 0x100000001b3ull + (uint64_t)at * 0x9e3779b97f4a7c15ull;
    const uint64_t one = mixed(x0), two = mixed(x0);
    dice = {(uint32_t)one, (uint32_t)(one >> 32), (uint32_t)two, (uint32_t)(two >> 32) | 1u};
#pragma unroll
    for (int k = 0; k < D; k++) {
      point[k] = -cell.beta[k];
      if (w.from) {
        const int r = chain / w.nodes, node = chain % w.nodes;
        const long long parent = w.from_place[which] + (long long)r * (w.nodes / w.branching) + node / w.branching;
        point[k] = w.from[parent * MOST + k];
      }
      total[k] = 0.0;
    }
    if (w.sums) for (int k = 0; k < 63; k++) w.sums[at * 63 + k] = 0.0;
  } else {
    const uint32_t *kept = w.dice + at * 4;
    dice = {kept[0], kept[1], kept[2], kept[3]};
#pragma unroll
    for (int k = 0; k < D; k++) { point[k] = w.point[at * MOST + k]; total[k] = w.total[at * MOST + k]; }
  }
  const uint32_t outside = part(cell.out), inside = part(cell.in);
  const float tau = (float)cell.tau, scale = (float)cell.scale, logit = (float)log(cell.tau / (1.0 - cell.tau));
  const float per_radius = 1.0f / fmaxf(tau, 1.0f - tau), letters = (float)(q - 1);
  float most = 1.0f;  // the largest decoded value
  for (int k = 0; k < 3 * GRID + 2; k++) most = fmaxf(most, fabsf(values[k]));
  const long long limit = w.limit_of_cell[which], last = min(w.done + w.steps, limit), look = limit / LOOKS;
  const long long time = w.time_of_cell[which];
  long long next_look = w.sums ? (w.done / look + 1) * look : last + 1;
  long long l = w.done;
  while (l < last) {
    const Stretch now = stretch(l, min(last, next_look), time);
    float here[D], delta[D], sum[D];
    float size = 0.0f;
#pragma unroll
    for (int k = 0; k < D; k++) {
      here[k] = (float)point[k]; size += fabsf(here[k]);
      delta[k] = 0.0f; sum[k] = 0.0f;
      if (SINGLE) { mine[k * THREADS] = here[k]; swept[k * THREADS] = 0.0f; }
    }
    size += now.length * most * (SINGLE ? 1 : s) * scale / (now.base + (float)OFFSET);  // as far as it can get
    for (int t = 0; t < now.length; t++) {
      const float step = __fdividef(scale, now.base + now.slope * (float)(now.offset + t + 1) + (float)OFFSET);
      const float after = (float)(now.length - t);
      if (SINGLE) {
        const uint64_t spread = (uint64_t)roll(dice) * (uint32_t)D;
        const int j = (int)(spread >> 32);
        int letter;
        if (roll(dice) >= (j == 0 ? inside : outside)) {
          letter = (int)(((spread & 0xffffffffu) * (uint64_t)(j == 0 ? 2 : q)) >> 32);
        } else {
          const float u = unit(roll(dice)), gap = tau - u;
          const uint32_t word = roll(dice);
          const float z = 2.0f * half_unit(word >> 16) - 1.0f;
          bool below = gap >= 0.0f;
          if (fabsf(gap) <= 0.5f * size + 1e-6f) {
            float distance = mine[0];
            for (int k = 1; k < D; k++) distance += (k == j ? z : 2.0f * unit(roll(dice)) - 1.0f) * mine[k * THREADS];
            if (fabsf(gap) <= 0.5f * fabsf(distance) + 1e-6f) below = u * (1.0f + expf(-logit - 2.0f * distance)) <= 1.0f;
          }
          if (j == 0) letter = below;
          else {
            const float score = (below ? 1.0f - tau : -tau) * z * per_radius;
            letter = min((int)(0.5f * (score + 1.0f) * letters + half_unit(word & 0xffffu)), q - 1);
          }
        }
        const float move = -step * (j == 0 ? values[3 * GRID + letter] : values[letter]);
        mine[j * THREADS] += move;
        swept[j * THREADS] += move * after;
      } else {
        uint32_t chosen = (1u << D) - 1;
        if (s < D) {
          chosen = 0;
          uint32_t needed = s;
#pragma unroll
          for (int k = 0; k < D; k++) {
            const uint32_t in = __umulhi(roll(dice), (uint32_t)(D - k)) < needed;
            chosen |= in << k;
            needed -= in;
          }
        }
        const bool face = chosen & 1u;
        const bool honest = q == 0 || roll(dice) < (face ? inside : outside);
        const float u = unit(roll(dice));
        bool below = u < 0.5f;
        uint32_t words[D];
        float x[D];
#pragma unroll
        for (int k = 1; k < D; k++) words[k] = roll(dice);
        if (honest) {
          const float gap = tau - u;
          below = gap >= 0.0f;
          float distance = here[0] + delta[0];
          x[0] = 1.0f;
#pragma unroll
          for (int k = 1; k < D; k++) {
            x[k] = 2.0f * half_unit(words[k] >> 16) - 1.0f;
            distance += x[k] * (here[k] + delta[k]);
          }
          if (fabsf(gap) <= 0.5f * fabsf(distance) + 1e-6f) below = u * (1.0f + expf(-logit - 2.0f * distance)) <= 1.0f;
        }
        const float sign = below ? 1.0f - tau : -tau;
        const float *table = values + (face ? (below ? 2 * GRID : GRID) : 0);
        const float tilt = face ? 1.0f : sign * per_radius;
#pragma unroll
        for (int k = 0; k < D; k++) {
          if (chosen >> k & 1u) {
            float decoded;
            if (q == 0) decoded = sign * x[k];
            else if (k == 0) decoded = values[3 * GRID + below];
            else {
              const int letter = honest ? min((int)(0.5f * (tilt * x[k] + 1.0f) * letters + half_unit(words[k] & 0xffffu)), q - 1)
                                        : (int)__umulhi(words[k], (uint32_t)q);
              decoded = table[letter];
            }
            const float move = -step * decoded;
            delta[k] += move;
            sum[k] += move * after;
          }
        }
      }
    }
#pragma unroll
    for (int k = 0; k < D; k++) {
      const float change = SINGLE ? mine[k * THREADS] - here[k] : delta[k];
      const float gathered = SINGLE ? swept[k * THREADS] : sum[k];
      total[k] += now.length * point[k] + (double)gathered;
      point[k] = fmin(fmax(point[k] + (double)change, -REACH - cell.beta[k]), REACH - cell.beta[k]);
    }
    l = now.end;
    if (l == next_look) {
      next_look += look;
      double *sums = w.sums + at * 63;
#pragma unroll
      for (int a = 0; a < D; a++) {
#pragma unroll
        for (int b = 0; b <= a; b++) sums[a * (a + 1) / 2 + b] += total[a] * total[b];
        sums[54 + a] += (double)l * total[a];
      }
    }
  }
  uint32_t *kept = w.dice + at * 4;
  kept[0] = dice.a; kept[1] = dice.b; kept[2] = dice.c; kept[3] = dice.d;
#pragma unroll
  for (int k = 0; k < D; k++) { w.point[at * MOST + k] = point[k]; w.total[at * MOST + k] = total[k]; }
}

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(e_)); exit(1); } } while (0)
template <class T> T *sent(const std::vector<T> &v) {
  if (v.empty()) return nullptr;
  T *p; CHECK(cudaMalloc(&p, v.size() * sizeof(T))); CHECK(cudaMemcpy(p, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice)); return p;
}
template <class T> T *space(size_t n) { T *p; CHECK(cudaMalloc(&p, n * sizeof(T))); CHECK(cudaMemset(p, 0, n * sizeof(T))); return p; }

struct Level {  // the chains of all cells at one level
  std::vector<int> cell_of_block[KINDS], first_of_block[KINDS], chains;
  std::vector<long long> place, limit, time;
  long long total = 0;
  double *point, *total_of, *sums = nullptr;
  uint32_t *dice;
};

static void run(const Cell *cells, Level &v, const Level *parent, int branching, int nodes, uint64_t seed, bool normaliser,
                const std::vector<long long> &horizons, FILE *paths) {
  v.point = space<double>(v.total * MOST); v.total_of = space<double>(v.total * MOST); v.dice = space<uint32_t>(v.total * 4);
  if (normaliser) v.sums = space<double>(v.total * 63);
  Work w{};
  w.cells = cells;
  const int *cell_of_block[KINDS], *first_of_block[KINDS];
  cudaStream_t streams[KINDS];
  for (int kind = 0; kind < KINDS; kind++) { cell_of_block[kind] = sent(v.cell_of_block[kind]); first_of_block[kind] = sent(v.first_of_block[kind]); CHECK(cudaStreamCreate(&streams[kind])); }
 
  w.chains_of_cell = sent(v.chains); w.place_of_cell = sent(v.place); w.point = v.point; w.total = v.total_of; w.sums = v.sums;
  w.dice = v.dice; w.limit_of_cell = sent(v.limit); w.time_of_cell = sent(v.time); w.seed = seed; w.branching = branching; w.nodes = nodes;
  if (parent) { w.from = parent->point; w.from_place = sent(parent->place); }
  long long longest = 0;
  for (long long n : v.limit) longest = std::max(longest, n);
  std::vector<long long> stops = horizons;
  if (stops.empty() || stops.back() < longest) stops.push_back(longest);
  long long done = 0;
  for (long long stop : stops) {
    if (stop > longest) break;
    w.begin = done == 0; w.done = done; w.steps = stop - done;
    for (int kind = KINDS - 1; kind >= 0; kind--) {
      const int blocks = (int)v.cell_of_block[kind].size();
      if (blocks == 0) continue;
      w.cell_of_block = cell_of_block[kind]; w.first_of_block = first_of_block[kind];
      switch (kind) {
        case 7: advance<9, false><<<blocks, THREADS, 0, streams[kind]>>>(w); break;
        case 6: advance<6, false><<<blocks, THREADS, 0, streams[kind]>>>(w); break;
        case 5: advance<3, false><<<blocks, THREADS, 0, streams[kind]>>>(w); break;
        case 4: advance<2, false><<<blocks, THREADS, 0, streams[kind]>>>(w); break;
        case 3: advance<9, true><<<blocks, THREADS, 0, streams[kind]>>>(w); break;
        case 2: advance<6, true><<<blocks, THREADS, 0, streams[kind]>>>(w); break;
        case 1: advance<3, true><<<blocks, THREADS, 0, streams[kind]>>>(w); break;
        default: advance<2, true><<<blocks, THREADS, 0, streams[kind]>>>(w);
      }
      CHECK(cudaGetLastError());
    }
    CHECK(cudaDeviceSynchronize());
    done = stop;
    if (paths) {
      std::vector<double> p(v.total * MOST);
      CHECK(cudaMemcpy(p.data(), v.total_of, p.size() * 8, cudaMemcpyDeviceToHost));
      for (double &value : p) value /= (double)stop;
      fwrite(p.data(), 8, p.size(), paths); fflush(paths);
    }
    fprintf(stderr, "%lld ", stop); fflush(stderr);
  }
  fprintf(stderr, "\n");
}

int main(int argc, char **argv) {
  if (argc != 7) { fprintf(stderr, "usage: recursion cells.txt MODE PEOPLE REPLICATIONS SEED OUT\n"); return 2; }
  const std::string mode = argv[2], out = argv[6];
  const long long people = atoll(argv[3]); const int R = atoi(argv[4]); const uint64_t seed = strtoull(argv[5], 0, 10);
  FILE *in = fopen(argv[1], "r");
  if (!in) { fprintf(stderr, "cannot read %s\n", argv[1]); return 2; }
  int count; if (fscanf(in, "%d", &count) != 1) return 2;
  std::vector<Cell> host(count);
  for (Cell &c : host) {
    memset(&c, 0, sizeof c);
    if (fscanf(in, "%d %d %d %lf %lf %lf %lf %lf %lf", &c.d, &c.q, &c.s, &c.tau, &c.scale, &c.out, &c.in, &c.face[0], &c.face[1]) != 9) return 2;
    for (int f = 0; f < 2; f++) for (int k = 0; k < c.q; k++) if (fscanf(in, "%lf", &c.within[f * GRID + k]) != 1) return 2;
    for (int k = 0; k < c.q; k++) if (fscanf(in, "%lf", &c.alone[k]) != 1) return 2;
    for (int k = 0; k < c.d; k++) if (fscanf(in, "%lf", &c.beta[k]) != 1) return 2;
  }
  fclose(in);
  const Cell *cells = sent(host);
  std::vector<int> branching;
  if (mode != "sn" && mode != "dc") for (const char *t = mode.c_str(); t && *t; t = strchr(t, ',') ? strchr(t, ',') + 1 : nullptr) branching.push_back(atoi(t));
  std::vector<int> nodes{1};
  for (int b : branching) nodes.push_back(nodes.back() * b);
  int all = 0; for (int b : nodes) all += b;
  FILE *avg = fopen((out + ".avg").c_str(), "wb");
  FILE *paths = mode == "sn" ? fopen((out + ".paths").c_str(), "wb") : nullptr;
  std::vector<Level> levels(nodes.size());
  for (size_t depth = 0; depth < nodes.size(); depth++) {
    Level &v = levels[depth];
    for (int c = 0; c < count; c++) {
      const int groups = mode == "dc" ? host[c].d + 4 : 1;
      const int chains = R * (branching.empty() ? groups : nodes[depth]);
      v.place.push_back(v.total); v.chains.push_back(chains); v.total += chains;
      v.limit.push_back(branching.empty() ? people / groups : people / all);
      v.time.push_back(branching.empty() ? 0 : (people / all) * (long long)depth);
    }
    for (int c = 0; c < count; c++) {
      const bool single = host[c].q > 0 && host[c].s == 1;
      const int kind = (single ? 0 : 4) + (host[c].d == 2 ? 0 : host[c].d == 3 ? 1 : host[c].d == 6 ? 2 : 3);
      for (int f = 0; f < v.chains[c]; f += THREADS) { v.cell_of_block[kind].push_back(c); v.first_of_block[kind].push_back(f); }
    }
    std::vector<long long> horizons;
    if (paths) for (long long h = 1000; h <= people; h *= 10) { horizons.push_back(h); if (3 * h <= people) horizons.push_back(3 * h); }
    run(cells, v, depth ? &levels[depth - 1] : nullptr, depth ? branching[depth - 1] : 1, nodes[depth], seed + depth, mode == "sn", horizons, paths);
    std::vector<double> p(v.total * MOST);
    CHECK(cudaMemcpy(p.data(), v.total_of, p.size() * 8, cudaMemcpyDeviceToHost));
    for (int c = 0; c < count; c++)
      for (long long k = v.place[c] * MOST; k < (v.place[c] + v.chains[c]) * MOST; k++) p[k] /= (double)v.limit[c];
    fwrite(p.data(), 8, p.size(), avg);
    if (mode == "sn") {
      std::vector<double> sums(v.total * 63);
      CHECK(cudaMemcpy(sums.data(), v.sums, sums.size() * 8, cudaMemcpyDeviceToHost));
      FILE *norm = fopen((out + ".norm").c_str(), "wb"); fwrite(sums.data(), 8, sums.size(), norm); fclose(norm);
    }
  }
  fclose(avg); if (paths) fclose(paths);
  return 0;
}
