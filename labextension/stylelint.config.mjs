/** The standard rules, with JupyterLab's way of naming classes. */
export default {
  extends: ['stylelint-config-standard'],
  rules: {
    // Rules stand with their component; the order of specificity would tear them apart.
    'no-descending-specificity': null,
    // Ours (`.jp-TfGuard-Section`), states (`.jp-mod-stale`), and of others: JupyterLab, Lumino, uPlot.
    'selector-class-pattern':
      '^(jp-[A-Z][A-Za-z]*(-[A-Za-z]+)*|jp-mod-[a-z]+|lm-[A-Za-z-]+|u-.+|uplot)$'
  }
};
