// This file is preloaded (`--import`) into a process and its threads. Each function of the built module that runs
// appends the path of its file to the file in WEBHOOK_TRACE. That file then contains the paths in the order of the
// first calls, also across threads.
import { appendFileSync, existsSync } from 'node:fs';
import { registerHooks } from 'node:module';
import ts from 'typescript';

const DIST = new URL('../../../libs/payments/dist/', import.meta.url).href;
const trace = process.env['WEBHOOK_TRACE'];

let last = '';
globalThis.recordFile = (file) => {
  // The test creates the file when the recording starts. A file that calls itself is one entry.
  if (file === last || !existsSync(trace)) return;
  last = file;
  appendFileSync(trace, `${file}\n`);
};

/** Adds a call of `recordFile` to each function of a file. */
function instrument(source, file) {
  const record = `recordFile(${JSON.stringify(file)})`;
  const insertions = [];
  const visit = (node) => {
    if (ts.isFunctionLike(node) && node.body !== undefined) {
      const { body } = node;
      const start = body.getStart();
      if (ts.isBlock(body)) insertions.push([start + 1, `${record};`]);
      else insertions.push([start, `(${record}, `], [body.end, ')']);
    }
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(file, source, ts.ScriptTarget.Latest, true, ts.ScriptKind.JS));
  let instrumented = source;
  for (const [at, text] of insertions.toSorted(([a], [b]) => b - a)) {
    instrumented = instrumented.slice(0, at) + text + instrumented.slice(at);
  }
  return instrumented;
}

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context);
    if (!url.startsWith(DIST)) return loaded;
    const file = url.slice(DIST.length).replace(/\.js$/, '.ts');
    const source = Buffer.from(/** @type {Uint8Array} */ (loaded.source)).toString();
    return { ...loaded, source: instrument(source, file) };
  },
});
