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
  const { factory } = ts;
  const record = () =>
    factory.createExpressionStatement(
      factory.createCallExpression(factory.createIdentifier('recordFile'), undefined, [
        factory.createStringLiteral(file),
      ]),
    );
  const visitor = (context) => {
    const visit = (node) => {
      const visited = ts.visitEachChild(node, visit, context);
      if (!ts.isFunctionLike(visited) || visited.body === undefined) return visited;
      const statements = ts.isBlock(visited.body)
        ? visited.body.statements
        : [factory.createReturnStatement(visited.body)];
      return withBody(visited, factory.createBlock([record(), ...statements], true));
    };
    return (root) => ts.visitNode(root, visit);
  };
  const withBody = (node, body) => {
    const { modifiers, name, parameters, asteriskToken } = node;
    if (ts.isArrowFunction(node)) {
      return factory.updateArrowFunction(
        node,
        modifiers,
        undefined,
        parameters,
        undefined,
        node.equalsGreaterThanToken,
        body,
      );
    }
    if (ts.isConstructorDeclaration(node)) {
      return factory.updateConstructorDeclaration(node, modifiers, parameters, body);
    }
    if (ts.isGetAccessor(node)) {
      return factory.updateGetAccessorDeclaration(
        node,
        modifiers,
        name,
        parameters,
        undefined,
        body,
      );
    }
    if (ts.isSetAccessor(node)) {
      return factory.updateSetAccessorDeclaration(node, modifiers, name, parameters, body);
    }
    if (ts.isMethodDeclaration(node)) {
      return factory.updateMethodDeclaration(
        node,
        modifiers,
        asteriskToken,
        name,
        undefined,
        undefined,
        parameters,
        undefined,
        body,
      );
    }
    if (ts.isFunctionExpression(node)) {
      return factory.updateFunctionExpression(
        node,
        modifiers,
        asteriskToken,
        name,
        undefined,
        parameters,
        undefined,
        body,
      );
    }
    return factory.updateFunctionDeclaration(
      node,
      modifiers,
      asteriskToken,
      name,
      undefined,
      parameters,
      undefined,
      body,
    );
  };
  const parsed = ts.createSourceFile(file, source, ts.ScriptTarget.Latest, true, ts.ScriptKind.JS);
  const { transformed } = ts.transform(parsed, [visitor]);
  return ts.createPrinter().printFile(transformed[0]);
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
