-- Gives Quarto's Markdown its HTML: callouts, tabsets, numbered floats, references, links.
-- What the source alone shows is checked in lint.py; a fault found here goes to stderr.

local kinds = { fig = "Figure", tbl = "Table", eq = "Equation" }
local callouts = { note = true, tip = true, warning = true, caution = true, important = true }
local counts, numbers, sets, offset = { fig = 0, tbl = 0, eq = 0 }, {}, 0, ""

local function fault(needle, message)
  io.stderr:write("FAULT\t", needle, "\t", message, "\n")
end

local function div(class, content, attributes)
  attributes = attributes or {}
  attributes.class = class
  return pandoc.Div(content, attributes)
end

local function number(id)
  local kind = id:match("^(%a+)%-")
  if not kinds[kind or ""] then return nil end
  if numbers[id] then fault("#" .. id, "the label " .. id .. " is used twice") end
  counts[kind] = counts[kind] + 1
  numbers[id] = kinds[kind] .. "\u{a0}" .. counts[kind]
  return kind
end

-- A figure, table or listing with a number; site.css puts a table's caption above it.
local function float(id, kind, content, caption)
  local words = pandoc.Inlines { pandoc.Str(numbers[id] .. ":"), pandoc.Space() } .. caption
  local figure = pandoc.Figure({ div("quarto-float-body", content) }, { pandoc.Plain(words) },
    { class = "quarto-float quarto-float-" .. kind .. " figure" })
  return div("quarto-float quarto-figure quarto-figure-center anchored", { figure }, { id = id })
end

local function callout(element, kind)
  local title, content = kind:gsub("^%l", string.upper), element.content
  local class = "callout callout-style-default callout-titled callout-" .. kind
  if element.attributes.title then
    title = pandoc.read(element.attributes.title, "markdown").blocks[1].content
  elseif content[1] and content[1].t == "Header" then
    title = content:remove(1).content
  end
  if element.attributes.icon == "false" then class = class .. " no-icon" end
  local header = { div("callout-icon-container", pandoc.RawBlock("html", '<i class="callout-icon"></i>')),
    div("callout-title-container flex-fill", pandoc.Plain(title)) }
  local collapse, toggle = element.attributes.collapse, {}
  local body = div("callout-body-container callout-body", content)
  if collapse then
    sets = sets + 1
    local id, open = "callout-" .. sets, collapse == "false"
    toggle = { ["data-bs-toggle"] = "collapse", ["data-bs-target"] = "." .. id .. "-contents",
      ["aria-controls"] = id, ["aria-expanded"] = tostring(open), role = "button", tabindex = "0" }
    table.insert(header, div("callout-btn-toggle", pandoc.RawBlock("html", '<i class="callout-toggle"></i>')))
    body = div(id .. "-contents callout-collapse collapse" .. (open and " show" or ""), { body }, { id = id })
  end
  header = div("callout-header d-flex align-content-center", header, toggle)
  return div(class, { header, body }, { id = element.identifier })
end

local function tabset(element)
  local nav, panes = "", pandoc.Blocks {}
  sets = sets + 1
  for _, block in ipairs(element.content) do
    local tab = block.t == "Header" and block.level == element.content[1].level
    if tab then
      local id, first = "tabset-" .. sets .. "-" .. #panes + 1, #panes == 0
      local title = pandoc.write(pandoc.Pandoc { pandoc.Plain(block.content) }, "html")
      nav = nav .. '<li class="nav-item" role="presentation"><a class="nav-link' .. (first and " active" or "")
        .. '" id="' .. id .. '-tab" href="#' .. id .. '" data-bs-toggle="tab" role="tab" aria-controls="'
        .. id .. '" aria-selected="' .. tostring(first) .. '">' .. title .. "</a></li>"
      panes:insert(div("tab-pane" .. (first and " active" or ""), {},
        { id = id, role = "tabpanel", ["aria-labelledby"] = id .. "-tab" }))
    elseif #panes == 0 then
      fault("panel-tabset", "a tabset starts with the heading of its first tab")
      return nil
    else
      panes[#panes].content:insert(block)
    end
  end
  local list = pandoc.RawBlock("html", '<ul class="nav nav-tabs" role="tablist">' .. nav .. "</ul>")
  return div("panel-tabset", { list, div("tab-content", panes) }, { id = element.identifier })
end

-- A cell with a numbered table: its code stays before the table.
local function table_cell(cell)
  local caption = pandoc.read(cell.attributes["tbl-cap"], "markdown").blocks[1].content
  local code, rest = pandoc.Blocks {}, pandoc.Blocks {}
  for _, block in ipairs(cell.content) do
    (block.classes and block.classes:includes("cell-code") and code or rest):insert(block)
  end
  number(cell.identifier)
  code:insert(float(cell.identifier, "tbl", rest, caption))
  return div("cell", code)
end

local function folded(block)
  local fold, summary = block.attributes["code-fold"], block.attributes["code-summary"] or "Code"
  if not fold then return nil end
  block.attributes = {}
  local title = pandoc.write(pandoc.Pandoc { pandoc.Plain { pandoc.Str(summary) } }, "html")
  local opening = '<details class="code-fold"' .. (fold == "show" and " open" or "") .. "><summary>"
  return { pandoc.RawBlock("html", opening .. title .. "</summary>"), block, pandoc.RawBlock("html", "</details>") }
end

local blocks = {
  traverse = "topdown",
  Div = function(element)
    local kind = (element.classes[1] or ""):match("^callout%-(%l+)$")
    if callouts[kind or ""] then return callout(element, kind) end
    if element.attributes["tbl-cap"] then return table_cell(element) end
    if element.classes[1] == "panel-tabset" and element.content[1].t == "Header" then return tabset(element) end
    if element.classes:includes("quarto-float") or not number(element.identifier) then return nil end
    local caption = element.content:remove(#element.content)
    if not caption or not caption.content or #element.content == 0 then
      fault("#" .. element.identifier, "a float needs content and a last paragraph as its caption")
      return nil
    end
    return float(element.identifier, element.identifier:match("^%a+"), element.content, caption.content)
  end,
  Figure = function(figure)
    local kind = number(figure.identifier)
    return kind and float(figure.identifier, kind, figure.content, figure.caption.long[1].content)
  end,
  Table = function(element)
    local id, caption = element.identifier, element.caption.long[1]
    local kind = number(id)
    element.identifier, element.caption.long = "", kind and {} or element.caption.long
    return kind and float(id, kind, { element }, caption.content)
  end,
  Inlines = function(inlines)
    local result = pandoc.Inlines {}
    for _, inline in ipairs(inlines) do
      local id = inline.t == "Str" and inline.text:match("^{#(eq%-[%w-]+)}$")
      local space = #result > 0 and (result[#result].t == "Space" or result[#result].t == "SoftBreak")
      local math = id and result[space and #result - 1 or #result]
      if math and math.mathtype == "DisplayMath" then
        if space then result:remove() end
        number(id)
        math.text = math.text .. "\\qquad(" .. counts.eq .. ")"
        result[#result] = pandoc.Span(math, { id = id, class = "quarto-math-with-attribute" })
      else
        result:insert(inline)
      end
    end
    return result
  end,
}

local references = {
  CodeBlock = folded,
  Cite = function(cite)
    local links = pandoc.Inlines {}
    for _, citation in ipairs(cite.citations) do
      local id = citation.id
      if not kinds[id:match("^(%a+)%-") or ""] then return nil end
      if not numbers[id] then fault("@" .. id, "dangling reference @" .. id) end
      if #links > 0 then links:extend { pandoc.Str(","), pandoc.Space() } end
      links:insert(pandoc.Link(numbers[id] or "?", "#" .. id, "", { class = "quarto-xref" }))
    end
    return links
  end,
  Link = function(link)
    if link.target:match("^%a[%w+.-]*:") then return nil end
    link.target = link.target:gsub("^/", offset):gsub("%.qmd$", ".html"):gsub("%.qmd#", ".html#")
    return link
  end,
  Image = function(image)
    local alt = image.attributes["fig-alt"] or image.attributes.alt or pandoc.utils.stringify(image.caption)
    image.attributes["fig-alt"], image.attributes.alt = nil, alt
    image.src = image.src:gsub("^/", offset)
    return image
  end,
  Str = function(str)
    if str.text:match("^:::") then fault(":::", "stray `:::`") end
  end,
}

function Pandoc(doc)
  offset = pandoc.utils.stringify(doc.meta.offset or "")
  doc = doc:walk(blocks):walk(references)
  local placed, cited = false, false
  doc:walk {
    Cite = function() cited = true end,
    Div = function(element) placed = placed or element.identifier == "refs" end,
  }
  if cited and not placed then
    doc.blocks:extend { pandoc.Header(2, "References", { id = "references", class = "unnumbered" }),
      div("references", {}, { id = "refs" }) }
  end
  return doc
end
