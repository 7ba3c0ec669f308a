import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { CallExpression, Expression, Node, SourceFile } from 'typescript';

// The TypeScript compiler of the application's Nest CLI. The application itself may use TypeScript 7, which has no such
// API.
const cli = createRequire(join(process.cwd(), 'package.json')).resolve('@nestjs/cli/package.json');
const ts = createRequire(cli)('typescript') as typeof import('typescript');

/** Adds `import { names } from 'specifier'` after the last import, without the names that the file imports already. */
export function addImport(source: string, names: readonly string[], specifier: string): string {
  const missing = names.filter((name) => importedFrom(source, name) !== specifier);
  if (missing.length === 0) return source;
  const line = `import { ${missing.join(', ')} } from '${specifier}';`;
  const end = parse(source).statements.findLast(ts.isImportDeclaration)?.end;
  return end === undefined ? `${line}\n${source}` : insert(source, end, `\n${line}`);
}

/** Returns the module specifier from which a file imports a name; `undefined` if the file does not import the name. */
export function importedFrom(source: string, name: string): string | undefined {
  const declaration = parse(source)
    .statements.filter(ts.isImportDeclaration)
    .find(({ importClause }) => {
      const bindings = importClause?.namedBindings;
      return (
        bindings !== undefined &&
        ts.isNamedImports(bindings) &&
        bindings.elements.some((element) => element.name.text === name)
      );
    });
  return (declaration?.moduleSpecifier as { text: string } | undefined)?.text;
}

/**
 * Adds an element to an array of the metadata of `@Module()`. Changes nothing if the array contains the element.
 *
 * @throws Error if the file has no `@Module({ … })`, if the property is not an array literal, or if the property may
 *   come from an object that the metadata spread.
 */
export function addToModule(
  source: string,
  property: 'imports' | 'providers',
  element: string,
): string {
  const file = parse(source);
  const metadata = find(file, (node): node is CallExpression =>
    isCall(node, 'Module'),
  )?.arguments.at(0);
  if (metadata === undefined || !ts.isObjectLiteralExpression(metadata)) {
    throw new Error(`@Module() must get an object literal, so that ${element} can be added.`);
  }
  const { properties } = metadata;
  const found =
    properties.find(({ name }) => name?.getText(file).replaceAll(/['"]/g, '') === property) ??
    properties.find(ts.isSpreadAssignment);
  if (found === undefined) {
    const start = metadata.getStart(file) + 1;
    return insert(source, start, `\n  ${property}: [\n    ${element},\n  ],`);
  }
  const value = ts.isPropertyAssignment(found) ? found.initializer : undefined;
  if (value === undefined || !ts.isArrayLiteralExpression(value)) {
    throw new Error(`"${property}" must be an array literal, so that ${element} can be added.`);
  }
  const last = value.elements.at(-1);
  if (value.elements.some((one) => one.getText(file) === element)) return source;
  if (last === undefined) return insert(source, value.end - 1, `\n    ${element},\n  `);
  const [separator] = /^\s*\n\s*|^/.exec(last.getFullText(file))!;
  const added = `${separator || ' '}${element}`;
  if (!value.elements.hasTrailingComma) return insert(source, last.end, `,${added}`);
  // A comment after the comma belongs to the last element.
  const comma = value.elements.end;
  const comment = ts.getTrailingCommentRanges(source, comma)?.at(-1);
  return insert(source, comment?.end ?? comma, `${added},`);
}

/** Returns the name of the module that a file passes to `NestFactory.create()` or another method of `NestFactory`. */
export function bootstrappedModule(source: string): string | undefined {
  const call = find(parse(source), (node): node is CallExpression => isCall(node, 'NestFactory'));
  const module = call?.arguments.at(0);
  return module !== undefined && ts.isIdentifier(module) ? module.text : undefined;
}

/** Whether a node calls the function `name`, or a method of the object `name`. */
function isCall(node: Node, name: string): node is CallExpression {
  if (!ts.isCallExpression(node)) return false;
  const callee: Expression = node.expression;
  const called = ts.isPropertyAccessExpression(callee) ? callee.expression : callee;
  return ts.isIdentifier(called) && called.text === name;
}

function find<T extends Node>(node: Node, wanted: (node: Node) => node is T): T | undefined {
  return wanted(node) ? node : ts.forEachChild(node, (child) => find(child, wanted));
}

function parse(source: string): SourceFile {
  return ts.createSourceFile('module.ts', source, ts.ScriptTarget.Latest);
}

function insert(source: string, position: number, text: string): string {
  return source.slice(0, position) + text + source.slice(position);
}
