/* The search: adds up the weights of `search_index.js` (see docs/_extensions/site_search.py).
   In the sidebar it shows the best pages while somebody types; on the search page all of them. */
"use strict";
(() => {
  const script = document.currentScript.src;
  const stop = new Set((
    "a an the of to with from my is are can be when what how i do does for in on at that as it its " +
    "before after each and or not if by this you your into was").split(" "));
  const endings = [["ies", "y"], ["ing", ""], ["ed", ""], ["es", ""], ["s", ""], ["e", ""]];

  function stem(word) {
    for (const [ending, instead] of endings) {
      if (word.endsWith(ending) && word.length - ending.length >= 3 && !word.endsWith("ss")) {
        word = word.slice(0, word.length - ending.length) + instead;
        break;
      }
    }
    return word.length > 3 && word.at(-1) === word.at(-2) ? word.slice(0, -1) : word;
  }

  function wordsOf(text) {
    const words = new Set();
    for (const name of text.match(/[A-Za-z0-9_]+/g) || []) {
      const parts = name.match(/[A-Z]?[a-z0-9]+|[A-Z]+/g) || [];
      for (const word of parts.length > 1 ? [name, ...parts] : [name]) {
        if (!stop.has(word.toLowerCase())) words.add(stem(word.toLowerCase()));
      }
    }
    return words;
  }

  function search(index, question, typing) {
    const found = new Map();
    const words = wordsOf(question);
    const begun = typing && /\w$/.test(question) ? question.match(/\w+$/)[0].toLowerCase() : "";
    for (const word of words) {
      let rows = index.words[word];
      if (!rows && begun.length > 2 && stem(begun) === word) {
        const longer = Object.keys(index.words).find((other) => other.startsWith(begun));
        rows = longer && index.words[longer];
      }
      for (const [number, score, section] of rows || []) {
        const page = found.get(number) || { number, score: 0, sections: new Map() };
        page.score += score;
        page.sections.set(section, (page.sections.get(section) || 0) + score);
        found.set(number, page);
      }
    }
    return [...found.values()].sort((a, b) => b.score - a.score || a.number - b.number);
  }

  function link(index, page) {
    const [address, title, about, sections] = index.pages[page.number];
    const [best] = [...page.sections].sort((a, b) => b[1] - a[1] || a[0] - b[0])[0];
    const [place, heading] = sections[best];
    const item = document.createElement("li");
    const anchor = document.createElement("a");
    anchor.href = new URL("../" + address + (best ? "#" + place : ""), script).href;
    anchor.textContent = best && heading !== title ? `${title}: ${heading}` : title;
    const text = document.createElement("p");
    text.textContent = about;
    item.append(anchor, text);
    return item;
  }

  let loading;
  function load() {
    loading ||= new Promise((done, failed) => {
      const tag = document.createElement("script");
      tag.src = new URL("search_index.js", script).href;
      tag.onload = () => done(window.siteIndex);
      tag.onerror = failed;
      document.head.append(tag);
    });
    return loading;
  }

  async function show(list, question, most, typing) {
    const index = await load();
    const pages = search(index, question, typing).slice(0, most);
    list.replaceChildren(...pages.map((page) => link(index, page)));
    return pages.length;
  }

  document.addEventListener("DOMContentLoaded", () => {
    const field = document.querySelector(".sidebar-search");
    const list = document.querySelector(".search-found");
    field?.addEventListener("focus", load);
    field?.addEventListener("input", () => show(list, field.value, 6, true));
    document.addEventListener("keydown", (event) => {
      const busy = /^(input|textarea|select)$/i.test(document.activeElement?.tagName || "");
      if (event.key === "Escape" && document.activeElement === field) {
        list.replaceChildren();
        field.blur();
      }
      if (event.key !== "/" || busy || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      const drawer = document.getElementById("__navigation");
      if (getComputedStyle(drawer.nextElementSibling).display !== "none") drawer.checked = true;
      drawer.checked ||= field.getBoundingClientRect().right <= 0;
      field.focus();
      field.select();
    });
    const results = document.getElementById("search-results");
    if (results) {
      const question = new URLSearchParams(location.search).get("q") || "";
      field.value = question;
      show(results.querySelector("ol"), question, 30, false).then((count) => {
        const said = count ? `Pages about “${question}”` : `No page has these words: “${question}”`;
        results.querySelector("p").textContent = question ? said : "Type what you look for.";
      });
    }
  });

  window.siteSearch = { load, search };
})();
