/*
 * Merged into JupyterLab's own configuration: style sheets become files of their own instead of texts inside scripts,
 * and lose their blanks. The page fetches them together with the scripts that name them. Scripts are made smaller than
 * by default.
 */
const path = require('node:path');

const { SwcJsMinimizerRspackPlugin } = require('@rspack/core');

const STYLES = /\.css$/;
const OURS = path.join(__dirname, 'lib');

/** Takes out JupyterLab's rule, which would wrap each style sheet in a script. */
class OwnStyles {
  apply(compiler) {
    const { module: modules } = compiler.options;
    modules.rules = modules.rules.filter(rule => !rule.use?.includes?.('style-loader'));
  }
}

// As small as browsers of these years read it.
const smaller = new SwcJsMinimizerRspackPlugin({
  minimizerOptions: {
    ecma: 2020,
    compress: { ecma: 2020, passes: 3 },
    format: { ecma: 2020, comments: false }
  }
});

module.exports = {
  optimization: { minimizer: [smaller] },
  plugins: [new OwnStyles()],
  module: {
    rules: [
      { test: /\.js$/, include: OURS, loader: require.resolve('./scripts/shortNames.cjs') },
      { test: /uPlot\.esm\.js$/, loader: require.resolve('./scripts/uplotParts.cjs') },
      {
        test: STYLES,
        type: 'css/auto',
        loader: 'builtin:lightningcss-loader',
        options: { minify: true }
      }
    ]
  },
  output: { cssFilename: '[name].[contenthash].css', cssChunkFilename: '[name].[contenthash].css' }
};
