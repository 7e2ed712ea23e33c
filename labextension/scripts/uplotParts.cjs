/*
 * Leaves out what uPlot can do and our chart does not: what never happens here becomes a constant, and the minimizer
 * drops the code behind it. Each row says how often its text stands in uPlot; another count is an error, since then
 * uPlot has changed.
 */
const NEVER = [
  // What outsiders may call, and we do not.
  [
    /^\t?uPlot\.(?:assign|fmtNum|range\w+|orient|sync|fmtDate|tzDate|addGap|clipGaps)\s*= \w+;\n/gm,
    '',
    11
  ],
  [/^\tself\.(?:\w+(?:Series|Band)|posToIdx|setLegend) = \w+;\n/gm, '', 8],
  [/^\tself\.redraw = [^]*?^\t\};\n/gm, '', 1],
  [/^\tevents\["setSeries"\] = [^]*?^\t\};\n/gm, '', 1],
  [/opts\.(?:id|title|class|plugins)\b/g, 'null', 7],
  // Bars, steps, splines, points on the line, a second way to thin it out.
  [/^\tlet paths = uPlot\.paths = [^]*?;\n/gm, '', 1],
  [/^\t\(?paths\.\w+\s*= \w+\);\n/gm, '', 4],
  [/ \|\| linearPath \|\| retNull/g, ' || linearPath', 1],
  [/paths: pointsPath,/g, '', 1],
  [/^const pointsPath = .*\n/gm, '', 1],
  [/^\t{5}\{\n\t{6}let _gaps = [^]*?^\t{5}\}\n/gm, '', 1],
  [/const decimate = .*;/g, 'const decimate = false;', 1],
  // Several tables of data, scales that are not linear, upright charts, scales made from others.
  [/^const xySeriesOpts = [^]*?^\};\n/gm, '', 1],
  [/\bmode == 1\b/g, 'true', 16],
  [/\bmode == 2\b/g, 'false', 16],
  [
    /\b(?:sc\.|scale\.|wsc\.|scaleX\.)?(?:distr|xScaleDistr) (?:==|>=)\s+(?:2|3|4|100)/g,
    'false',
    37
  ],
  [/\b(?:scaleX|sx)\.ori == 0/g, 'true', 25],
  [/\bscaleX\.ori == 1/g, 'false', 9],
  [/\b(?:sc|wsc|scaleOpts)\.from != null/g, 'false', 3],
  [/\b(?:sc|wsc)\.from == null/g, 'true', 4],
  // Axes of dates, axes that find their own ticks, scales that find their own ends, names of axes, labels that lean.
  [/= (?:true && )?(?:sc|scales\[s\.scale\])\.time;/g, '= false;', 3],
  [/\bscaleX\.time\b/g, 'false', 1],
  [/^const \[ timeIncrs.*\n/gm, '', 2],
  [/^\tconst _time(?:Axis|Series)(?:Splits|Vals?)\s*= .*\n/gm, '', 3],
  [/^const days3 = [^]*?^const engNames = [^]*?^\};\n/gm, '', 1],
  [/^const localTz = .*\n/gm, '', 1],
  [/let minSpace = axis\._space = [^]*?findIncr\(.*\);/g, 'incrSpace = [1, 1];', 1],
  [/^\t{3}if \(isArr\(axis\.incrs\)\) \{[^]*?axis\.incrs  = .*\n/gm, '', 1],
  [/^(?:const \w+Incrs = |genIncrs).*\n/gm, '', 5],
  [/ \|\| \(isTime && .*\);/g, ');', 1],
  [/av \|\| (?:_timeAxisVals|numAxisVals)/g, 'av', 2],
  [/rn \|\| \(isTime \? [^]*?\n\t{4}\)\);/g, 'rn || snapNumX);', 1],
  [/rangeIsArr = isArr\(rn\)/g, 'rangeIsArr = false', 1],
  [/\[_min, _max\] = rangeNum\(_min, _max, rangePad, true\)/g, '_max++', 1],
  [/!rangeIsArr && isObj\(rn\)/g, 'false', 1],
  [/rangeIsArr && \(rn/g, 'false && (rn', 1],
  [/\baxis\.label != null/g, 'false', 3],
  [/let angle = .*;/g, 'const angle = 0;', 1],
  // A legend, bands between lines, a line in focus, a locked cursor, zoom by uPlot itself.
  [/= legend\.show;/g, '= false;', 1],
  [/legend\.show && /g, 'false && ', 1],
  [/^\tif \(legend\.live\) \{[^]*?^\t\}\n/gm, '', 1],
  [/^\t\{\n\t\tlegend\.idxs = [^]*?^\t\}\n/gm, '', 1],
  [/assign\(\{\}, legendOpts, opts\.legend\)/g, '{live: true}', 1],
  [/= opts\.bands \|\| \[\];/g, '= [];', 1],
  [/^\tbands\.forEach\([^]*?^\t\}\);\n/gm, '', 1],
  [/let \[ (bandFillDir), (bandClipDir) \] = .*;/g, 'const $1 = 0, $2 = 0;', 3],
  [/flags != 0 && bands/g, 'false && bands', 1],
  [/if \(bandClip\) \{/g, 'if (false) {', 1],
  [/\b\w+Path instanceof Map\b/g, 'false', 2],
  [/focus\.prox >= 0;/g, 'false;', 1],
  [/series\.some\(s => s\._focus\) && .*;/g, 'false;', 1],
  [/\bcursor\._?lock\b(?! =)/g, 'false', 8],
  [/\bdrag\.(?:setScale|y)\b/g, 'false', 5],
  [/\bdrag\.uni\b/g, 'null', 1]
];

module.exports = function (source) {
  return NEVER.reduce((text, [pattern, replacement, count]) => {
    const found = text.match(pattern)?.length ?? 0;
    if (found !== count) {
      throw new Error(`uPlot has changed: ${pattern} is found ${found} times, not ${count}`);
    }
    return text.replace(pattern, replacement);
  }, source);
};
