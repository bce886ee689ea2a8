(() => {
  "use strict";
  const root = document.documentElement;
  const byId = (id) => document.getElementById(id);
  const steps = [...document.querySelectorAll(".timeline > li > article[id]")];
  const still = matchMedia("(prefers-reduced-motion: reduce)");

  byId("toolbar").hidden = false;
  byId("shortcuts").hidden = false;

  const show = (element) => {
    for (let fold = element.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    element.focus({ preventScroll: true });
    element.scrollIntoView({ block: "start", behavior: still.matches ? "auto" : "smooth" });
  };

  // Steps, from where the reader is: the focus if it is in the conversation, else what stands at the top.
  const visible = () => steps.filter((step) => !step.parentElement.hidden);
  const here = (list) => {
    const focused = list.findIndex((step) => step.contains(document.activeElement));
    if (focused >= 0) return focused;
    const below = list.findIndex((step) => step.getBoundingClientRect().bottom > 120);
    return below < 0 ? list.length : below - (list[below].getBoundingClientRect().top > 0 ? 1 : 0);
  };
  const move = (by) => {
    const list = visible();
    const target = list[Math.min(Math.max(here(list) + by, 0), list.length - 1)];
    if (target) show(target);
  };
  byId("next-step").addEventListener("click", () => move(1));
  byId("previous-step").addEventListener("click", () => move(-1));

  const problems = [...document.querySelectorAll("main .conversation .note.problem")];
  let problem = -1;
  const moveProblem = (by) => {
    if (!problems.length) return;
    problem = problem < 0 && by < 0 ? problems.length - 1 : (problem + by + problems.length) % problems.length;
    problems[problem].closest("li.step").hidden = false;
    show(problems[problem]);
  };
  byId("next-problem")?.addEventListener("click", () => moveProblem(1));

  const unfold = byId("unfold");
  const folded = new Map();
  const unfoldAll = (open) => {
    for (const fold of document.querySelectorAll("main details:not(.raw)")) {
      if (open) {
        folded.set(fold, fold.open);
        fold.open = true;
      } else fold.open = folded.get(fold) ?? fold.open;
    }
    unfold.setAttribute("aria-pressed", String(open));
    unfold.textContent = open ? "Fold again" : "Unfold all";
  };
  const unfolded = () => unfold.getAttribute("aria-pressed") === "true";
  unfold.addEventListener("click", () => unfoldAll(!unfolded()));
  let printing = false;
  addEventListener("beforeprint", () => {
    printing = !unfolded();
    if (printing) unfoldAll(true);
  });
  addEventListener("afterprint", () => {
    if (printing) unfoldAll(false);
  });

  const themes = ["system", "dark", "light"];
  const theme = byId("theme");
  const setTheme = (name) => {
    if (name === "system") delete root.dataset.theme;
    else root.dataset.theme = name;
    theme.textContent = `Colours: ${name}`;
    theme.dataset.now = name;
  };
  const remember = (name) => {
    try {
      localStorage.setItem("lutumpy-colours", name);
    } catch {
      // A file without storage forgets it.
    }
  };
  try {
    const kept = localStorage.getItem("lutumpy-colours");
    setTheme(themes.includes(kept) ? kept : "system");
  } catch {
    setTheme("system");
  }
  const nextTheme = () => {
    const name = themes[(themes.indexOf(theme.dataset.now) + 1) % themes.length];
    setTheme(name);
    remember(name);
  };
  theme.addEventListener("click", nextTheme);

  const search = byId("search");
  const found = byId("found");
  const texts = new Map();
  const textOf = (step) => {
    if (!texts.has(step)) texts.set(step, step.textContent.toLowerCase());
    return texts.get(step);
  };
  const filter = () => {
    const wanted = search.value.trim().toLowerCase();
    let count = 0;
    for (const step of steps) {
      const match = !wanted || textOf(step).includes(wanted);
      step.parentElement.hidden = !match;
      count += match;
    }
    found.textContent = wanted ? `${count} of ${steps.length} steps` : "";
  };
  let timer = 0;
  search.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(filter, 120);
  });
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      filter();
      const first = visible()[0];
      if (first) show(first);
    } else if (event.key === "Escape") {
      search.value = "";
      filter();
      search.blur();
    }
  });

  const keys = {
    j: () => move(1),
    k: () => move(-1),
    n: () => moveProblem(1),
    p: () => moveProblem(-1),
    e: () => unfoldAll(!unfolded()),
    t: nextTheme,
    "/": () => search.focus(),
  };
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.target instanceof HTMLElement && event.target.closest("input, textarea, select")) return;
    const act = Object.hasOwn(keys, event.key) ? keys[event.key] : null;
    if (!act) return;
    event.preventDefault();
    act();
  });

  // A link may lead to something that is folded away or filtered out.
  const follow = () => {
    const target = location.hash.length > 1 ? byId(decodeURIComponent(location.hash.slice(1))) : null;
    if (!target) return;
    const step = target.closest("li.step");
    if (step) step.hidden = false;
    if (target.closest("details:not([open])")) show(target);
    else target.focus({ preventScroll: true });
  };
  addEventListener("hashchange", follow);
  follow();
})();
