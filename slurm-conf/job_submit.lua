-- /etc/slurm/job_submit.lua, where slurmctld runs, with JobSubmitPlugins=lua in slurm.conf:
-- a sample of how the limits of the site file are kept for jobs with a --stage-profile. A
-- courtesy to users, who are told at once; limits of associations, QOS and partitions are
-- the barrier.
--
-- slurmctld reads the file when it loads this one: at its start, and when this one changes
-- (touch it after `troupe site-shape --all --output /etc/troupe/shapes`).

local shapes_file = "/etc/troupe/shapes"

local max_minutes, denied = nil, {}

local function read_limits()
    local file = io.open(shapes_file, "r")
    if not file then
        slurm.log_error("troupe: no %s, so no limits of it", shapes_file)
        return
    end
    for line in file:lines() do
        max_minutes = tonumber(line:match("^limit time (%d+)$")) or max_minutes
        local kind, target = line:match("^limit deny (%S+) (%S+)$")
        if kind == "gres" or kind == "license" then
            denied[#denied + 1] = {kind = kind, target = target}
        end
    end
    file:close()
end
read_limits()

-- The profile that sbatch, salloc or srun was told, or nil.
local function profile_of(job)
    for _, entry in pairs(job.spank_job_env or {}) do
        local name = entry:match("^_SLURM_SPANK_OPTION_troupe_stage_profile=(.+)$")
        if name then
            return name
        end
    end
    return nil
end

-- Whether "matlab:2,idl" has matlab, "gres:gpu:a100:2" (as later Slurms write it:
-- "gres/gpu:a100:2") gpu and gpu:a100.
local function has(list, target)
    for item in (list or ""):gmatch("[^,]+") do
        item = item:gsub("^gres[:/]", "")
        local rest = item:sub(#target + 1)
        if item:sub(1, #target) == target and (rest == "" or rest:match("^[:=@]")) then
            return true
        end
    end
    return false
end

local function asks_for(job, d)
    if d.kind == "license" then
        return has(job.licenses, d.target)
    end
    return has(job.tres_per_node, d.target) or has(job.tres_per_job, d.target) or
        has(job.tres_per_socket, d.target) or has(job.tres_per_task, d.target)
end

function slurm_job_submit(job, partitions, uid)
    local profile = profile_of(job)
    if not profile then
        return slurm.SUCCESS
    end
    if max_minutes and job.time_limit == slurm.NO_VAL then
        job.time_limit = max_minutes
    elseif max_minutes and job.time_limit > max_minutes then
        slurm.log_user("jobs of a stage profile may run for %d minutes here; ask for no more",
            max_minutes)
        return slurm.ESLURM_INVALID_TIME_LIMIT
    end
    for _, d in ipairs(denied) do
        if asks_for(job, d) then
            slurm.log_user("%s %s is denied here for jobs of a stage profile", d.kind,
                d.target)
            return slurm.ERROR
        end
    end
    return slurm.SUCCESS
end

function slurm_job_modify(job, record, partitions, uid)
    return slurm.SUCCESS
end
