-- /etc/slurm/cli_filter.lua, wherever srun, sbatch and salloc are called, with
-- CliFilterPlugins=lua in slurm.conf: gives a job the shape of its --stage-profile, an
-- option of Troupe's plugin (plugstack.conf), which has refused what is no profile.
--
-- It runs in the user's own process. It reads one file of the administrator's, compares and
-- sets options; it starts no program, and nothing a user writes is run.
--
-- With a cli_filter.lua of your own: put all but the last three functions into it, and call
-- troupe_shape(options) in your slurm_cli_pre_submit.

-- Made from the site file, once after every change:
--     troupe site-shape --all --output /etc/troupe/shapes
-- The plugin says where it is, by site= or shapes= in plugstack.conf, when it takes a
-- --stage-profile.
local function shapes_path()
    return os.getenv("TROUPE_SHAPES") or "/etc/troupe/shapes"
end

-- An option of the profile is left out when the user has written one of these.
local same_kind = {
    ["cpus-per-task"] = {"cpus-per-task", "cpus-per-gpu"},
    ["mem"] = {"mem", "mem-per-cpu", "mem-per-gpu"},
    ["gres"] = {"gres", "gpus", "gpus-per-node", "gpus-per-socket", "gpus-per-task"},
}

-- What a step can have; the others are of the job that it is in.
local of_a_step = {["cpus-per-task"] = true, ["mem"] = true, ["gres"] = true}

-- The job tells its steps by these what it has; that is nothing the user wrote. (srun of
-- Slurm 22.05 and 23.02 does not read the last one.)
local of_the_job = {
    ["mem"] = "SLURM_MEM_PER_NODE",
    ["mem-per-cpu"] = "SLURM_MEM_PER_CPU",
    ["cpus-per-task"] = "SLURM_CPUS_PER_TASK",
}

-- The options of a profile, {{key, value}, …}; or nil and what is wrong.
local function read_shape(profile)
    local shapes_file = shapes_path()
    local file, problem = io.open(shapes_file, "r")
    if not file then
        return nil, problem
    end
    local shape, inside, whole = nil, false, false
    for line in file:lines() do
        local key, rest = line:match("^(%S+) ?(.*)$")
        if key == "profile" then
            inside = rest == profile
            shape = inside and {} or shape
        elseif key == "end" then
            whole = true
        elseif inside and key == "never" then
            file:close()
            return nil, rest
        elseif inside and key == "option" then
            local name, value = rest:match("^(%S+) (.+)$")
            shape[#shape + 1] = {name, value}
        end
    end
    file:close()
    if not whole then
        return nil, shapes_file .. " is cut"
    end
    return shape, "no profile " .. profile .. " in " .. shapes_file
end

-- Whether an option has a value. Slurm answers with these where it has none.
local function is_set(options, key)
    local value = options[key]
    return value ~= nil and value ~= "" and value ~= "unset" and value ~= "0" and
        value ~= "-1" and value ~= "(null)"
end

-- "4505", "4505M" and "4G" as Slurm writes them: MiB.
local function mebibytes(text)
    local units = {[""] = 1, M = 1, G = 1024, T = 1024 * 1024}
    local number, unit = text:match("^(%d+)([MGT]?)$")
    return number and tonumber(number) * units[unit]
end

local function is_written(options, key, in_job)
    if not is_set(options, key) then
        return false
    end
    local from_job = in_job and of_the_job[key] and os.getenv(of_the_job[key])
    return not from_job or mebibytes(options[key]) ~= mebibytes(from_job)
end

local function user_wrote(options, key, in_job)
    for _, other in ipairs(same_kind[key] or {key}) do
        if is_written(options, other, in_job) then
            return true
        end
    end
    return false
end

-- From 23.11 on the job tells its steps their CPUs once more, beside GPUs of each task; srun
-- ends where the two differ.
local function set_cpus_again(options, value)
    if os.getenv("SLURM_TRES_PER_TASK") and is_set(options, "tres-per-task") then
        local tres = options["tres-per-task"]:gsub("cpu([:=])%d+", "cpu%1" .. value)
        options["tres-per-task"] = tres
    end
end

-- Gives the job, or the step, the shape of its profile. slurm.SUCCESS or slurm.ERROR.
function troupe_shape(options)
    local plugin = options["spank"]["troupe"]
    local profile = plugin and plugin["stage-profile"]
    -- The plugin takes that variable away when the user has written a profile; where it
    -- still is, the profile is that of the job and its shape not this step's.
    if not profile or
        os.getenv("SLURM_SPANK__SLURM_SPANK_OPTION_troupe_stage_profile") then
        return slurm.SUCCESS
    end
    local shape, problem = read_shape(profile)
    if not shape then
        slurm.log_error("--stage-profile: %s", problem)
        return slurm.ERROR
    end
    local in_job = options["type"] == "srun" and is_set(options, "jobid")
    for _, option in ipairs(shape) do
        local key, value = option[1], option[2]
        if (of_a_step[key] or not in_job) and not user_wrote(options, key, in_job) then
            options[key] = value
            if not is_set(options, key) then
                slurm.log_error("--stage-profile: Slurm does not take --%s=%s of %s", key,
                    value, profile)
                return slurm.ERROR
            end
            if key == "cpus-per-task" then
                set_cpus_again(options, value)
            end
        end
    end
    return slurm.SUCCESS
end

function slurm_cli_setup_defaults(options, early)
    return slurm.SUCCESS
end

function slurm_cli_pre_submit(options, offset)
    return troupe_shape(options)
end

function slurm_cli_post_submit(offset, job, step)
    return slurm.SUCCESS
end
