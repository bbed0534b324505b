// Makes room for the legend of a plot at the page's width. On a narrow screen, the legend is a list below the plot,
// and there is no tool bar.
{
  const draw = window.Plotly.newPlot;
  const ENTRY_PX = 20;
  window.Plotly.newPlot = (element, data, layout, config) => {
    const div = typeof element === "string" ? document.getElementById(element) : element;
    const shown = layout.showlegend === false
      ? [] : data.filter((trace) => trace.name && trace.showlegend !== false && trace.visible !== false);
    const legend = shown.length > 1 || shown.some((trace) => trace.showlegend) ? shown.length : 0;
    const margin = layout.margin ?? {};
    if (window.matchMedia("(max-width: 700px)").matches) {
      const list = legend && ENTRY_PX * legend + 14;
      layout.height += list - (legend ? 20 : 0);
      layout.margin = { ...margin, l: 48, r: Math.min(margin.r ?? 30, 60), t: legend ? 28 : margin.t,
        b: (margin.b ?? 60) + list };
      const drawn = layout.height - layout.margin.t - layout.margin.b;
      layout.legend = { ...layout.legend, orientation: "v", x: 0, y: -(margin.b ?? 60) / drawn, yanchor: "top", tracegroupgap: 0, maxheight: list + 40 };
      layout.font = { ...layout.font, size: 12 };
      config = { ...config, displayModeBar: false };
    } else if (legend) {
      const widest = Math.max(...shown.map((trace) => trace.name.length));
      const beside = Math.max(1, Math.floor((div.clientWidth - 120) / (50 + 7.5 * widest)));
      layout.height += ENTRY_PX * (Math.ceil(legend / beside) - 1);
    }
    div.parentElement.style.height = "auto";
    div.style.height = `${layout.height}px`;
    return draw(element, data, layout, config);
  };
}
