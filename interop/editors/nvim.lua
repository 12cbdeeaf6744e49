-- Neovim runs the Lua snippets of docs/editors.md, then talks to the command that each of them starts.
-- Usage: GANDER_WORK=folder GANDER_DOCS=docs/editors.md nvim --headless -u NONE -c 'luafile nvim.lua'

local work, docs = vim.env.GANDER_WORK, vim.env.GANDER_DOCS

local function report(verdict, name, reason)
  io.stdout:write(verdict .. " " .. name .. (reason and " " .. tostring(reason):gsub("\n", " ") or "") .. "\n")
end

local function case(name, run)
  local ok, reason = pcall(run)
  report(ok and "pass" or "fail", name, not ok and reason or nil)
end

--- The code blocks of a section of the page, in one language.
local function snippets(section, language)
  local found, inside, code = {}, false, nil
  for line in io.lines(docs) do
    if line:match("^## ") then
      inside = line == "## " .. section
    elseif inside and line == "```" .. language then
      code = {}
    elseif code and line == "```" then
      found[#found + 1], code = table.concat(code, "\n"), nil
    elseif code then
      code[#code + 1] = line
    end
  end
  return found
end

--- What CodeCompanion is told by its snippet: the command of the adapter.
local function codecompanion_command(code)
  local told
  package.loaded["codecompanion"] = { setup = function(options) told = options end }
  package.loaded["codecompanion.adapters"] = {
    extend = function(base, adapter)
      assert(base == "goose", "another base: " .. base)
      return adapter
    end,
  }
  assert(loadstring(code))()
  assert(told.interactions.chat.adapter == "gander", "the chat uses another adapter")
  return told.adapters.acp.gander().commands.default, nil
end

--- What avante is told by its snippet: options, written as assignments.
local function avante_command(code)
  local options = {}
  setfenv(assert(loadstring(code)), setmetatable(options, { __index = _G }))()
  local agent = options.acp_providers[options.provider]
  local command = { agent.command }
  vim.list_extend(command, agent.args)
  -- It starts agents with PATH and what stands in env, and nothing else: here also where this trial keeps its data.
  local env = { PATH = vim.env.PATH, GANDER_DATA = vim.env.GANDER_DATA, GANDER_MODEL = vim.env.GANDER_MODEL }
  return command, vim.tbl_extend("force", env, agent.env)
end

--- One turn with a question: initialize, session/new, prompt, permission, answer.
local function turn(command, env)
  local answers, text, asked, buffer, job = {}, {}, nil, "", nil
  local function send(message)
    message.jsonrpc = "2.0"
    vim.fn.chansend(job, vim.json.encode(message) .. "\n")
  end
  local function handle(message)
    if message.method == "session/update" then
      local update = message.params.update
      if update.sessionUpdate == "agent_message_chunk" then
        text[#text + 1] = update.content.text
      end
    elseif message.method == "session/request_permission" then
      asked = message
      send({ id = message.id, result = { outcome = { outcome = "selected", optionId = "allow_once" } } })
    elseif message.id then
      answers[message.id] = message
    end
  end
  job = vim.fn.jobstart(command, {
    cwd = work, env = env, clear_env = env ~= nil,
    on_stdout = function(_, data)
      data[1] = buffer .. data[1]
      buffer = table.remove(data)
      for _, line in ipairs(data) do
        handle(vim.json.decode(line))
      end
    end,
  })
  assert(job > 0, "it does not start: " .. table.concat(command, " "))
  local function call(id, method, params)
    send({ id = id, method = method, params = params })
    assert(vim.wait(30000, function() return answers[id] ~= nil end, 5), "no answer to " .. method)
    assert(answers[id].result, vim.json.encode(answers[id]))
    return answers[id].result
  end
  call(1, "initialize", { protocolVersion = 1, clientCapabilities = { fs = { readTextFile = false } } })
  local session = call(2, "session/new", { cwd = work, mcpServers = {} }).sessionId
  local script = '[[script:[[{"tool":"write","args":{"path":"from-nvim.txt","content":"hi"}}],[{"text":"All done."}]]]]'
  local ended = call(3, "session/prompt", { sessionId = session, prompt = { { type = "text", text = script } } })
  vim.fn.jobstop(job)
  assert(ended.stopReason == "end_turn", vim.json.encode(ended))
  assert(table.concat(text) == "All done.", table.concat(text))
  assert(asked and asked.params.toolCall.content[1].type == "diff", "the question shows no diff")
end

local found = snippets("Neovim", "lua")
case("two_snippets", function() assert(#found == 2, #found .. " snippets") end)
case("codecompanion", function() turn(codecompanion_command(found[1])) end)
case("avante_without_home", function() turn(avante_command(found[2])) end)
vim.cmd("qa!")
