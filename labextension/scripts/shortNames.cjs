/*
 * Gives the members that our classes declare private names of one or two letters: nobody outside of a bundle can name
 * them. What others have named keeps its name, also where it begins with an underscore, as translations do. One table for
 * all files, so that a name stays the same wherever it stands.
 */
const { readdirSync, readFileSync } = require('node:fs');
const path = require('node:path');

const { transformSync } = require('esbuild');

const SOURCES = path.join(__dirname, '..', 'src');
const DECLARED = /\bprivate (?:(?:readonly|static|async|get|set) )*(_\w+)/g;

const names = new Set(
  readdirSync(SOURCES, { recursive: true })
    .filter(file => /\.tsx?$/.test(file))
    .flatMap(file => [...readFileSync(path.join(SOURCES, file), 'utf8').matchAll(DECLARED)])
    .map(([, name]) => name)
);
const ours = new RegExp(`^(?:${[...names].join('|')})$`);
let table = {};

module.exports = function (source) {
  const { code, mangleCache } = transformSync(source, {
    mangleProps: ours,
    mangleCache: table,
    target: 'es2020'
  });
  table = mangleCache;
  return code;
};
