-- Devices in crowds, for wrk: each thread asks what is asked, and uploads fresh reports of that round until it moves on.
-- Arguments: study (hex), path of the query, reports an upload, uploads between two looks.

local random = io.open("/dev/urandom", "rb")
local threads = {}

function setup(thread)
  table.insert(threads, thread)
end

function init(args)
  study = args[1]:gsub("..", function(pair) return string.char(tonumber(pair, 16)) end)
  look, each, pause = args[2], tonumber(args[3]), tonumber(args[4])
  left, known, accepted, refused, looks, rounds, last = 0, nil, 0, 0, 0, 0, 0
  math.randomseed(random:read(1):byte() + 256 * random:read(1):byte() + 65536 * random:read(1):byte())
end

local function numbers(text, name)
  local found = {}
  local list = text:match('"' .. name .. '":%[([^%]]*)%]')
  if list then
    for word in list:gmatch("[^,]+") do table.insert(found, tonumber(word)) end
  end
  return found
end

local function drawn()
  local lot = math.random() * known.sum
  for point, need in ipairs(known.needs) do
    lot = lot - need
    if lot < 0 then return point - 1 end
  end
  return known.last
end

function request()
  if known == nil or left <= 0 then
    left = pause
    return wrk.format("GET", look)
  end
  left = left - 1
  local ids, parts = random:read(16 * each), { study }
  for k = 0, each - 1 do
    local point = drawn()
    parts[#parts + 1] = ids:sub(16 * k + 1, 16 * k + 16) .. known.place
      .. string.char(math.floor(point / 256), point % 256, math.random(0, 1))
  end
  return wrk.format("POST", "/v1/reports", nil, table.concat(parts))
end

function response(status, headers, body)
  local kept = body:match('"accepted":(%d+)')
  if kept then
    accepted = accepted + tonumber(kept)
    refused = refused + each - tonumber(kept)
    return
  end
  looks = looks + 1
  local round = tonumber(body:match('"round":(%d+)'))
  if round == nil then return end -- a round that waits: those under way still send to it
  local group, needs, sum, final = tonumber(body:match('"group":(%d+)')), numbers(body, "needs"), 0, 0
  for point, need in ipairs(needs) do
    sum = sum + need
    if need > 0 then final = point - 1 end
  end
  if round ~= last then rounds, last = rounds + 1, round end
  known = { needs = needs, sum = sum, last = final, place = string.char(
    math.floor(round / 16777216) % 256, math.floor(round / 65536) % 256, math.floor(round / 256) % 256, round % 256,
    math.floor(group / 256), group % 256) }
end

function done(summary, latency, requests)
  local kept, lost, seen, most = 0, 0, 0, 0
  for _, thread in ipairs(threads) do
    kept, lost, seen = kept + thread:get("accepted"), lost + thread:get("refused"), seen + thread:get("looks")
    most = math.max(most, thread:get("rounds"))
  end
  local wrong = summary.errors
  io.write(string.format(
    '\nFOUND {"seconds":%.4f,"accepted":%d,"refused":%d,"looks":%d,"rounds":%d,"p50":%.3f,"p99":%.3f,"max":%.3f,"failed":%d}\n',
    summary.duration / 1e6, kept, lost, seen, most, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    latency.max / 1e3, wrong.connect + wrong.read + wrong.write + wrong.status + wrong.timeout))
end
