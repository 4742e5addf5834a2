// A search over the sections of all pages, which the page's address keeps: #text=list+walk.
// Without a script all of their text is there, for the browser's own search.
(() => {
  const list = document.querySelector(".passages");
  const sections = [...list.children].map((item) => ({
    item,
    title: item.querySelector("a").textContent.toLowerCase(),
    shown: item.querySelector("p"),
    text: item.querySelector("p").textContent,
    all: item.textContent.toLowerCase(),
  }));
  const form = Object.assign(document.createElement("form"), { className: "filters" });
  form.setAttribute("role", "search");
  const label = form.appendChild(document.createElement("label"));
  const box = Object.assign(document.createElement("input"), { type: "search", name: "text" });
  label.append("Words", box);
  const said = form.appendChild(document.createElement("output"));

  const mark = ({ shown, text }, words) => {
    const at = Math.max(text.toLowerCase().indexOf(words[0]), 0);
    const end = at + words[0].length;
    const found = document.createElement("mark");
    found.append(text.slice(at, end));
    shown.replaceChildren(text.slice(Math.max(at - 120, 0), at), found, text.slice(end, end + 180));
  };
  function show() {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    const has = (text) => words.every((word) => text.includes(word));
    const found = sections.filter((section) => words.length && has(section.all));
    for (const section of sections) section.item.hidden = !found.includes(section);
    for (const section of found) mark(section, words);
    list.append(...found.filter((section) => !has(section.title)).map((section) => section.item));
    list.prepend(...found.filter((section) => has(section.title)).map((section) => section.item));
    said.textContent = words.length ? `${found.length} sections` : "";
  }
  const open = () => {
    box.value = new URLSearchParams(location.hash.slice(1)).get("text") ?? "";
    show();
  };
  box.addEventListener("input", () => {
    show();
    history.replaceState(null, "", `#${new URLSearchParams({ text: box.value })}`);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", open);
  list.before(form);
  open();
  box.focus();
})();
