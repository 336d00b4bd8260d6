#include "core/queue/redis/scripts.h"

#include "core/base/check.h"

namespace merope::queue::redis {
namespace {

// What every script begins with. The job hash has: request, digest, state, priority (0..2), attempts, epoch, worker,
// submitted, started, ended, cancel ('0'/'1'), code, message, last_seq (shown to callers); spec, max_wait, max_run, order
// (of submission), stream + entry (its place in a stream), out_bytes, output_expires, expires ('0' while it lives), and
// the limits of the server that accepted it: max_attempts, keep_job, keep_output, max_output.
constexpr std::string_view kPrelude = R"lua(
local P = '{merope}:'
local LEASE, MAX_QUEUED = tonumber(ARGV[2]), tonumber(ARGV[6])
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local SHOWN = {'request', 'state', 'priority', 'attempts', 'epoch', 'worker', 'submitted', 'started', 'ended', 'cancel', 'code',
               'message', 'last_seq'}
local CLASSES = {'high', 'normal', 'low'}

local function job_key(id) return P .. 'job:' .. id end

-- rank: 0..5, in the order of service
local function stream_of(rank)
  return P .. 's:' .. CLASSES[math.floor(rank / 2) + 1] .. (rank % 2 == 0 and ':returned' or '')
end

local function exists(id)
  local job = redis.call('HMGET', job_key(id), 'state', 'expires')
  return job[1] and (job[2] == '0' or now < tonumber(job[2]))
end

-- The id and the fields of SHOWN, or false.
local function record(id)
  if not exists(id) then return false end
  local fields = redis.call('HMGET', job_key(id), unpack(SHOWN))
  table.insert(fields, 1, id)
  return fields
end

-- cancel, last_seq, out_bytes and max_output when this epoch is the running attempt, else false.
local function owned(id, epoch)
  local job = redis.call('HMGET', job_key(id), 'state', 'epoch', 'cancel', 'last_seq', 'out_bytes', 'max_output')
  if job[1] ~= 'running' or job[2] ~= epoch then return false end
  return {cancel = job[3] == '1', last_seq = tonumber(job[4]), out_bytes = tonumber(job[5]), max_output = tonumber(job[6])}
end

local function wake(id) redis.call('PUBLISH', P .. 'wake', id) end

local function drop_entry(id)
  local at = redis.call('HMGET', job_key(id), 'stream', 'entry')
  if at[1] then
    redis.call('XACK', at[1], 'workers', at[2])
    redis.call('XDEL', at[1], at[2])
  end
end

local function enqueue(id, came_back)
  local rank = 2 * redis.call('HGET', job_key(id), 'priority') + (came_back and 0 or 1)
  local order = redis.call('INCR', P .. 'order')
  local stream = stream_of(rank)
  local entry = redis.call('XADD', stream, '*', 'id', id)
  redis.call('HSET', job_key(id), 'state', 'queued', 'worker', '', 'stream', stream, 'entry', entry)
  redis.call('ZREM', P .. 'running', id)
  redis.call('ZADD', P .. 'queued', rank * 2 ^ 40 + order, id)
  return order
end

local function end_job(id, state, code, message)
  local job = redis.call('HMGET', job_key(id), 'keep_job', 'keep_output', 'request')
  local keep_job, keep_output = tonumber(job[1]), tonumber(job[2])
  drop_entry(id)
  redis.call('ZREM', P .. 'queued', id)
  redis.call('ZREM', P .. 'running', id)
  redis.call('HSET', job_key(id), 'state', state, 'code', code, 'message', message, 'ended', now,
             'output_expires', now + keep_output, 'expires', now + keep_job)
  redis.call('HDEL', job_key(id), 'spec')
  redis.call('UNLINK', P .. 'in:' .. id)
  redis.call('ZADD', P .. 'ended', now + keep_job, id)
  redis.call('PEXPIRE', job_key(id), keep_job)
  redis.call('PEXPIRE', P .. 'out:' .. id, keep_output)
  redis.call('PEXPIRE', P .. 'request:' .. job[3], keep_job)
  wake(id)
end

local function end_cancelled(id) end_job(id, 'cancelled', 1, 'cancelled on request') end

local function return_lost()
  local lost = redis.call('ZRANGEBYSCORE', P .. 'running', '-inf', now)
  for _, id in ipairs(lost) do
    local job = redis.call('HMGET', job_key(id), 'cancel', 'attempts', 'worker', 'request', 'spec', 'max_attempts')
    if not job[1] then
      redis.call('ZREM', P .. 'running', id)
    elseif job[1] == '1' then
      end_cancelled(id)
    elseif tonumber(job[2]) >= tonumber(job[6]) then
      local message = job[2] .. ' workers were lost while they ran this job; the last one was ' .. job[3]
      redis.call('XADD', P .. 'dead', 'MAXLEN', '~', 1000, '*', 'id', id, 'request', job[4], 'attempts', job[2],
                 'worker', job[3], 'message', message, 'spec', job[5] or '')
      end_job(id, 'failed', 13, message)
    else
      drop_entry(id)
      enqueue(id, true)
      wake(id)
    end
  end
  return #lost
end

-- Ends a queued job that was never started and has waited too long. Whether it did.
local function expire_wait(id)
  local job = redis.call('HMGET', job_key(id), 'max_wait', 'submitted', 'epoch')
  if job[1] == '0' or job[3] ~= '0' or now < job[2] + job[1] then return false end
  end_job(id, 'expired', 4, 'no worker took the job within max_queue_wait (' .. job[1] .. ' ms)')
  return true
end
)lua";

// request id, digest, priority, spec, input, max_queue_wait, max_run_time, job id.
// -> {'new' | 'duplicate', job id}, {'reused'}, {'full'}, {'memory', used, limit}
// Runs only below maxmemory, and refuses from 80 % of it: the jobs that were accepted still have output to write.
constexpr std::string_view kSubmit = R"lua(
local request, digest, id = ARGV[8], ARGV[9], ARGV[15]
local known = redis.call('GET', P .. 'request:' .. request)
if known and exists(known) then
  if redis.call('HGET', job_key(known), 'digest') ~= digest then return {'reused'} end
  return {'duplicate', known}
end
if redis.call('ZCARD', P .. 'queued') >= MAX_QUEUED then return {'full'} end
local memory = redis.call('INFO', 'memory')
local used, limit = tonumber(string.match(memory, 'used_memory:(%d+)')), tonumber(string.match(memory, 'maxmemory:(%d+)'))
if limit > 0 and used > 0.8 * limit then return {'memory', used, limit} end
redis.call('SET', P .. 'request:' .. request, id)
redis.call('SET', P .. 'in:' .. id, ARGV[12])
redis.call('HSET', job_key(id), 'request', request, 'digest', digest, 'priority', ARGV[10], 'attempts', 0, 'epoch', 0,
           'submitted', now, 'started', 0, 'ended', 0, 'cancel', 0, 'code', 0, 'message', '', 'last_seq', 0, 'spec', ARGV[11],
           'max_wait', ARGV[13], 'max_run', ARGV[14], 'out_bytes', 0, 'output_expires', 0, 'expires', 0,
           'max_attempts', ARGV[3], 'keep_job', ARGV[4], 'keep_output', ARGV[5], 'max_output', ARGV[7])
local order = enqueue(id, false)
redis.call('HSET', job_key(id), 'order', order)
redis.call('ZADD', P .. 'jobs', order, id)
return {'new', id}
)lua";

// worker, token (the same when a claim is repeated because its answer was lost).
// -> {'job', id, epoch, attempt, spec, input, max_run_time, waited}
//    {'none', ms until a lease ends or -1, last id of each stream in the order of service}: what to wait for
// A consumer group that is missing (a new or emptied Redis) is made here. It then delivers entries of running jobs again:
// those stay with the group, and end with their job.
constexpr std::string_view kClaim = R"lua(
local worker, token = ARGV[8], ARGV[9]
local function answer(id, epoch)
  local job = redis.call('HMGET', job_key(id), 'attempts', 'spec', 'max_run', 'submitted')
  return {'job', id, epoch, job[1], job[2], redis.call('GET', P .. 'in:' .. id) or '', job[3], now - job[4]}
end
local last_token, last_id, last_epoch = string.match(redis.call('HGET', P .. 'claims', worker) or '', '^(%S+) (%S+) (%d+)$')
if last_token == token and owned(last_id, last_epoch) then return answer(last_id, last_epoch) end

return_lost()
local function next_entry(stream)
  local function read()
    return redis.pcall('XREADGROUP', 'GROUP', 'workers', worker, 'COUNT', 1, 'STREAMS', stream, '>')
  end
  local reply = read()
  if reply and reply.err and string.find(reply.err, 'NOGROUP', 1, true) then
    redis.call('XGROUP', 'CREATE', stream, 'workers', '0', 'MKSTREAM')
    reply = read()
  end
  if not reply then return false end
  if reply.err then error(reply.err) end
  local entry = reply[1][2][1]
  return entry[1], entry[2] and entry[2][2] or ''
end
local last_ids = {}
for rank = 0, 5 do
  local stream = stream_of(rank)
  while true do
    local entry, id = next_entry(stream)
    if not entry then break end
    local job = redis.call('HMGET', job_key(id), 'state', 'stream', 'entry')
    if job[2] ~= stream or job[3] ~= entry then
      redis.call('XACK', stream, 'workers', entry)
      redis.call('XDEL', stream, entry)
    elseif job[1] == 'queued' and not expire_wait(id) then
      local epoch = redis.call('HINCRBY', job_key(id), 'epoch', 1)
      redis.call('HINCRBY', job_key(id), 'attempts', 1)
      redis.call('HSET', job_key(id), 'state', 'running', 'worker', worker, 'started', now, 'last_seq', 0, 'out_bytes', 0)
      redis.call('ZREM', P .. 'queued', id)
      redis.call('ZADD', P .. 'running', now + LEASE, id)
      redis.call('UNLINK', P .. 'out:' .. id)
      redis.call('HSET', P .. 'claims', worker, token .. ' ' .. id .. ' ' .. epoch)
      wake(id)
      return answer(id, epoch)
    end
  end
  local info = redis.call('XINFO', 'STREAM', stream)
  for i = 1, #info, 2 do
    if info[i] == 'last-generated-id' then last_ids[rank + 1] = info[i + 1] end
  end
end
local first = redis.call('ZRANGE', P .. 'running', 0, 0, 'WITHSCORES')
return {'none', first[2] and math.max(first[2] - now, 1) or -1, unpack(last_ids)}
)lua";

// job id, epoch, seq, bytes. -> {'ok' | 'fenced' | 'cancelled'}, {'long', max_output}, {'hole', last_seq}
constexpr std::string_view kPut = R"lua(
local id, epoch, seq = ARGV[8], ARGV[9], tonumber(ARGV[10])
local job = owned(id, epoch)
if not job then return {'fenced'} end
if job.cancel then return {'cancelled'} end
if seq <= job.last_seq then return {'ok'} end
if seq ~= job.last_seq + 1 then return {'hole', job.last_seq} end
if job.out_bytes + #ARGV[11] > job.max_output then return {'long', job.max_output} end
redis.call('XADD', P .. 'out:' .. id, epoch .. '-' .. ARGV[10], 'b', ARGV[11])
redis.call('HSET', job_key(id), 'last_seq', ARGV[10], 'out_bytes', job.out_bytes + #ARGV[11])
wake(id)
return {'ok'}
)lua";

// job id, epoch. -> {'ok' | 'fenced' | 'cancelled'}
constexpr std::string_view kBeat = R"lua(
local job = owned(ARGV[8], ARGV[9])
if not job then return {'fenced'} end
redis.call('ZADD', P .. 'running', now + LEASE, ARGV[8])
return {job.cancel and 'cancelled' or 'ok'}
)lua";

// job id, epoch, seq, bytes, state, code, message. -> {'ok' | 'fenced' | 'cancelled'}, {'hole', last_seq}
constexpr std::string_view kFinish = R"lua(
local id, epoch, seq, state = ARGV[8], ARGV[9], tonumber(ARGV[10]), ARGV[12]
local job = owned(id, epoch)
if not job then
  if not exists(id) then return {'fenced'} end
  local ended = redis.call('HMGET', job_key(id), 'epoch', 'state')
  if ended[1] ~= epoch or ended[2] == 'queued' then return {'fenced'} end
  if ended[2] == state then return {'ok'} end
  return {ended[2] == 'cancelled' and 'cancelled' or 'fenced'}
end
if job.cancel and state ~= 'cancelled' then
  end_cancelled(id)
  return {'cancelled'}
end
if seq ~= job.last_seq + 1 then return {'hole', job.last_seq} end
redis.call('XADD', P .. 'out:' .. id, epoch .. '-' .. ARGV[10], 'b', ARGV[11])
redis.call('HSET', job_key(id), 'last_seq', ARGV[10])
end_job(id, state, ARGV[13], ARGV[14])
return {'ok'}
)lua";

// job id, epoch. -> {'ok' | 'fenced' | 'cancelled'}
constexpr std::string_view kRelease = R"lua(
local id = ARGV[8]
local job = owned(id, ARGV[9])
if not job then return {'fenced'} end
if job.cancel then
  end_cancelled(id)
  return {'cancelled'}
end
redis.call('HINCRBY', job_key(id), 'attempts', -1)
drop_entry(id)
enqueue(id, true)
wake(id)
return {'ok'}
)lua";

// job id. -> {'ok', record}, {'unknown'}
constexpr std::string_view kCancel = R"lua(
local id = ARGV[8]
if not exists(id) then return {'unknown'} end
local state = redis.call('HGET', job_key(id), 'state')
if state == 'queued' or state == 'running' then redis.call('HSET', job_key(id), 'cancel', 1) end
if state == 'queued' then end_cancelled(id) end
return {'ok', record(id)}
)lua";

// -> how many jobs changed state or got their entry back.
// Besides: makes missing groups, forgets jobs past keep_job, and what is left of workers that are gone.
constexpr std::string_view kReconcile = R"lua(
for rank = 0, 5 do
  local made = redis.pcall('XGROUP', 'CREATE', stream_of(rank), 'workers', '0', 'MKSTREAM')
  if made.err and not string.find(made.err, 'BUSYGROUP', 1, true) then error(made.err) end
end
local changed = return_lost()
for _, id in ipairs(redis.call('ZRANGE', P .. 'queued', 0, -1)) do
  if not exists(id) then
    redis.call('ZREM', P .. 'queued', id)
  elseif expire_wait(id) then
    changed = changed + 1
  else
    local at = redis.call('HMGET', job_key(id), 'stream', 'entry')
    if #redis.call('XRANGE', at[1], at[2], at[2]) == 0 then
      redis.call('HSET', job_key(id), 'entry', redis.call('XADD', at[1], '*', 'id', id))
      changed = changed + 1
    end
  end
end
for _, id in ipairs(redis.call('ZRANGEBYSCORE', P .. 'ended', '-inf', now)) do
  local request = redis.call('HGET', job_key(id), 'request')
  if request and redis.call('GET', P .. 'request:' .. request) == id then redis.call('UNLINK', P .. 'request:' .. request) end
  redis.call('UNLINK', job_key(id), P .. 'out:' .. id)
  redis.call('ZREM', P .. 'jobs', id)
  redis.call('ZREM', P .. 'ended', id)
end
redis.call('ZREMRANGEBYSCORE', P .. 'workers', '-inf', now)
for _, name in ipairs(redis.call('HKEYS', P .. 'claims')) do
  if not redis.call('ZSCORE', P .. 'workers', name) then redis.call('HDEL', P .. 'claims', name) end
end
for rank = 0, 5 do
  for _, consumer in ipairs(redis.call('XINFO', 'CONSUMERS', stream_of(rank), 'workers')) do
    -- Deleting a consumer that holds entries would lose them.
    if consumer[4] == 0 and not redis.call('ZSCORE', P .. 'workers', consumer[2]) then
      redis.call('XGROUP', 'DELCONSUMER', stream_of(rank), 'workers', consumer[2])
    end
  end
end
return changed
)lua";

// worker, model, announcement, current job.
constexpr std::string_view kAnnounce = R"lua(
local key = P .. 'worker:' .. ARGV[8]
redis.call('HSET', key, 'announcement', ARGV[10], 'job', ARGV[11])
redis.call('PEXPIRE', key, 15000)
redis.call('ZADD', P .. 'workers', now + 15000, ARGV[8])
redis.call('HSET', P .. 'models', ARGV[9], ARGV[10])
return {'ok'}
)lua";

// job id. -> {'ok', record}, {'unknown'}
constexpr std::string_view kGet = R"lua(
local found = record(ARGV[8])
if not found then return {'unknown'} end
return {'ok', found}
)lua";

// state or '', limit. -> records, newest first
constexpr std::string_view kList = R"lua(
local state, limit = ARGV[8], tonumber(ARGV[9])
local found = {}
local function take(id)
  local job = record(id)
  if job and #found < limit and (state == '' or job[3] == state) then found[#found + 1] = job end
end
if state == 'queued' or state == 'running' then
  local ids = redis.call('ZRANGE', P .. state, 0, -1)
  local order = {}
  for _, id in ipairs(ids) do order[id] = tonumber(redis.call('HGET', job_key(id), 'order') or 0) end
  table.sort(ids, function(a, b) return order[a] > order[b] end)
  for _, id in ipairs(ids) do take(id) end
else
  local page = 0
  while #found < limit do
    local ids = redis.call('ZREVRANGE', P .. 'jobs', page * 100, page * 100 + 99)
    if #ids == 0 then break end
    for _, id in ipairs(ids) do take(id) end
    page = page + 1
  end
end
return found
)lua";

// job id. -> how many jobs are before it
constexpr std::string_view kPlace = R"lua(
return redis.call('ZRANK', P .. 'queued', ARGV[8]) or 0
)lua";

// -> {queued, running, age of the oldest queued one}
constexpr std::string_view kStats = R"lua(
local oldest = now
for _, id in ipairs(redis.call('ZRANGE', P .. 'queued', 0, -1)) do
  oldest = math.min(oldest, tonumber(redis.call('HGET', job_key(id), 'submitted') or now))
end
return {redis.call('ZCARD', P .. 'queued'), redis.call('ZCARD', P .. 'running'), now - oldest}
)lua";

// -> {name, announcement, current job} of each living worker, by name
constexpr std::string_view kWorkers = R"lua(
local names = redis.call('ZRANGEBYSCORE', P .. 'workers', '(' .. now, '+inf')
table.sort(names)
local found = {}
for _, name in ipairs(names) do
  local worker = redis.call('HMGET', P .. 'worker:' .. name, 'announcement', 'job')
  if worker[1] then found[#found + 1] = {name, worker[1], worker[2]} end
end
return found
)lua";

// -> announcements by model name
constexpr std::string_view kModels = R"lua(
local names = redis.call('HKEYS', P .. 'models')
table.sort(names)
local found = {}
for i, name in ipairs(names) do found[i] = redis.call('HGET', P .. 'models', name) end
return found
)lua";

// job id, epoch and seq to read after, how many. -> {'ok', record, {id, bytes, id, bytes, ...}}, {'unknown'}
constexpr std::string_view kRead = R"lua(
local id = ARGV[8]
local job = record(id)
if not job then return {'unknown'} end
local entries = {}
local expires = tonumber(redis.call('HGET', job_key(id), 'output_expires'))
if expires == 0 or now < expires then
  for _, entry in ipairs(redis.call('XRANGE', P .. 'out:' .. id, '(' .. ARGV[9] .. '-' .. ARGV[10], '+', 'COUNT', ARGV[11])) do
    entries[#entries + 1] = entry[1]
    entries[#entries + 1] = entry[2][2]
  end
end
return {'ok', job, entries}
)lua";

// allow-oom: a Redis that is full must still let running jobs end and waiting ones go on. Submitting is what stops.
constexpr std::string_view kRefusedWhenFull = "";
constexpr std::string_view kAllowedWhenFull = " flags=allow-oom";
constexpr std::string_view kReadsOnly = " flags=no-writes";

struct Source {
  std::string_view flags;
  std::string_view body;
};

Source source_of(Script script) {
  switch (script) {
    case Script::kSubmit: return {kRefusedWhenFull, kSubmit};
    case Script::kClaim: return {kAllowedWhenFull, kClaim};
    case Script::kPut: return {kAllowedWhenFull, kPut};
    case Script::kBeat: return {kAllowedWhenFull, kBeat};
    case Script::kFinish: return {kAllowedWhenFull, kFinish};
    case Script::kRelease: return {kAllowedWhenFull, kRelease};
    case Script::kCancel: return {kAllowedWhenFull, kCancel};
    case Script::kReconcile: return {kAllowedWhenFull, kReconcile};
    case Script::kAnnounce: return {kAllowedWhenFull, kAnnounce};
    case Script::kGet: return {kReadsOnly, kGet};
    case Script::kList: return {kReadsOnly, kList};
    case Script::kPlace: return {kReadsOnly, kPlace};
    case Script::kStats: return {kReadsOnly, kStats};
    case Script::kWorkers: return {kReadsOnly, kWorkers};
    case Script::kModels: return {kReadsOnly, kModels};
    case Script::kRead: return {kReadsOnly, kRead};
  }
  check_failed(__FILE__, __LINE__, "script", "a script without source");
}

}  // namespace

std::string script_text(Script script) {
  const Source source = source_of(script);
  return "#!lua" + std::string(source.flags) + std::string(kPrelude) + std::string(source.body);
}

}  // namespace merope::queue::redis
