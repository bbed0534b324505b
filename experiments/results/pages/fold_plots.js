// Draws a plot when its fold first opens, hides an arm in every plot of the page once it is chosen in a legend, opens
// the fold in which a link ends, and prints all folds with plots as wide as paper.
{
  const draw = window.Plotly.newPlot, waiting = new Map(), hidden = new Set(), PAPER_PX = 670;
  const plots = () => document.querySelectorAll(".js-plotly-plot");
  const isFolded = (element) => element.closest("details:not([open])");

  // A list below a plot hides traces by false, which stays; a legend by "legendonly".
  const apply = (div) => {
    const chosen = [], visible = [];
    div.data.forEach(({ legendgroup, visible: is = true }, index) => {
      const next = hidden.has(legendgroup) ? "legendonly" : true;
      if (legendgroup && is && is !== next) {
        chosen.push(index);
        visible.push(next);
      }
    });
    if (chosen.length) window.Plotly.restyle(div, { visible }, chosen);
  };
  // A double click is two clicks as well: what a single one does waits for another, as plotly.js does itself.
  let single = 0;
  const clicked = (choose, delay) => ({ data, curveNumber }) => {
    const { legendgroup } = data[curveNumber];
    if (!legendgroup) return true;
    clearTimeout(single);
    single = setTimeout(() => {
      choose(legendgroup, new Set(data.map((trace) => trace.legendgroup).filter((group) => group && group !== legendgroup)));
      plots().forEach(apply);
    }, delay);
    return false;
  };
  const hideOrShow = (group) => hidden.delete(group) || hidden.add(group);
  const showAlone = (group, others) => {
    const isAlone = !hidden.has(group) && [...others].every((other) => hidden.has(other));
    others.forEach((other) => isAlone ? hidden.delete(other) : hidden.add(other));
    hidden.delete(group);
  };

  const start = (div, how) => {
    draw(div, ...how);
    if (!div.on) return;  // without plotly.js
    div.on("plotly_legendclick", clicked(hideOrShow, 300));
    div.on("plotly_legenddoubleclick", clicked(showAlone, 0));
    div.on("plotly_restyle", () => apply(div));
    apply(div);
  };
  const startShown = () => waiting.forEach((how, div) => {
    if (!isFolded(div)) {
      waiting.delete(div);
      start(div, how);
    }
  });
  window.Plotly.newPlot = (id, ...how) => {
    waiting.set(document.getElementById(id), how);
    startShown();
  };
  document.addEventListener("toggle", ({ target }) => {
    startShown();
    for (const div of target.querySelectorAll(".js-plotly-plot")) {  // the window may have another width by now
      if (!isFolded(div)) window.Plotly.Plots.resize(div);
    }
  }, true);

  const reveal = () => {
    const target = document.getElementById(location.hash.slice(1));
    if (!target) return;
    const own = target.querySelector(":scope > details");
    if (own) own.open = true;
    for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    startShown();
    target.scrollIntoView();
  };
  window.addEventListener("hashchange", reveal);
  window.addEventListener("DOMContentLoaded", reveal);
  document.addEventListener("click", ({ target }) => {
    const link = target.closest("a[href^='#']");
    if (link && link.hash === location.hash) reveal();  // which changes no hash
  });

  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    for (const fold of opened) fold.open = true;
    startShown();
    for (const div of plots()) window.Plotly.relayout(div, { width: PAPER_PX });
  });
  window.addEventListener("afterprint", () => {
    for (const fold of opened) fold.open = false;
    for (const div of plots()) window.Plotly.relayout(div, { autosize: true, width: null });
  });
}
