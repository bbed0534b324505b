// Buttons that copy a block of code, access by keyboard to what scrolls sideways, and names for the theme's two sidebars.

/** The commands of a console's text without prompt and output; any other text as it is. */
function copied(text) {
  const commands = [];
  let continued = false;
  for (const line of text.split("\n")) {
    if (line.startsWith("$ ")) commands.push(line.slice(2));
    else if (continued) commands.push(line);
    continued = (continued || line.startsWith("$ ")) && line.endsWith("\\");
  }
  return commands.length ? commands.join("\n") + "\n" : text;
}

function addCopyButton(block, status) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(copied(block.querySelector("pre").textContent));
    button.textContent = status.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; status.textContent = ""; }, 2000);
  });
  block.append(button);
}

const status = document.createElement("p");
status.setAttribute("role", "status");
status.className = "visually-hidden";
document.querySelector("article")?.append(status);
if (navigator.clipboard) {
  const blocks = document.querySelectorAll("div[class*='highlight-']:not(.highlight-text) > .highlight");
  for (const block of blocks) addCopyButton(block, status);
}

const sized = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
    else target.removeAttribute("tabindex");
  }
});
for (const box of document.querySelectorAll("pre, .table-wrapper")) sized.observe(box);

document.querySelector(".sidebar-drawer")?.setAttribute("aria-label", "Pages");
document.querySelector(".toc-drawer")?.setAttribute("aria-label", "On this page");
