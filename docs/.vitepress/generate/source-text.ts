import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import ts from 'typescript';

/** Replaces each part of a text that is known only while the code runs. */
const UNKNOWN = '…';

/** Parses a TypeScript file. */
export function parseSource(file: string): ts.SourceFile {
  return ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true);
}

/** Calls `visit` with the node and all nodes below it, in the order of the source. */
export function walk(node: ts.Node, visit: (node: ts.Node) => void): void {
  visit(node);
  ts.forEachChild(node, (child) => walk(child, visit));
}

/**
 * The text of an expression that builds a message from literals, templates and constants, with `…` for every part that is
 * known only while the code runs. A conditional expression has the text of its first branch.
 *
 * @param known texts of identifiers, for example of the parameters of the function.
 */
export function textOf(expression: ts.Expression, known?: ReadonlyMap<string, string>): string {
  if (ts.isStringLiteralLike(expression) || ts.isNumericLiteral(expression)) return expression.text;
  if (ts.isParenthesizedExpression(expression)) return textOf(expression.expression, known);
  if (ts.isConditionalExpression(expression)) return textOf(expression.whenTrue, known);
  if (ts.isBinaryExpression(expression)) {
    const left = textOf(expression.left, known);
    const right = textOf(expression.right, known);
    if (expression.operatorToken.kind === ts.SyntaxKind.PlusToken) return left + right;
    const isDefault = expression.operatorToken.kind === ts.SyntaxKind.QuestionQuestionToken;
    return isDefault && left === UNKNOWN ? right : UNKNOWN;
  }
  if (ts.isTemplateExpression(expression)) {
    const spans = expression.templateSpans.map(
      (span) => textOf(span.expression, known) + span.literal.text,
    );
    return expression.head.text + spans.join('');
  }
  if (!ts.isIdentifier(expression)) return UNKNOWN;
  const value = constantValue(expression);
  return known?.get(expression.text) ?? (value === undefined ? UNKNOWN : textOf(value, known));
}

/** The initial value of the constant that an identifier names, in an enclosing block, this file, or an imported file. */
function constantValue(identifier: ts.Identifier): ts.Expression | undefined {
  let scope: ts.Node = identifier;
  while (!ts.isSourceFile(scope)) {
    scope = scope.parent;
    const statements = ts.isBlock(scope) || ts.isSourceFile(scope) ? scope.statements : [];
    const value = declaredValue(statements, identifier.text);
    if (value !== undefined) return value;
  }
  return importedValue(scope, identifier.text);
}

function declaredValue(
  statements: readonly ts.Statement[],
  name: string,
): ts.Expression | undefined {
  return statements
    .filter(ts.isVariableStatement)
    .filter(({ declarationList }) => declarationList.flags & ts.NodeFlags.Const)
    .flatMap(({ declarationList }) => [...declarationList.declarations])
    .find((declaration) => ts.isIdentifier(declaration.name) && declaration.name.text === name)
    ?.initializer;
}

function importedValue(source: ts.SourceFile, name: string): ts.Expression | undefined {
  for (const statement of source.statements) {
    if (!ts.isImportDeclaration(statement)) continue;
    const bindings = statement.importClause?.namedBindings;
    if (bindings === undefined || !ts.isNamedImports(bindings)) continue;
    if (!bindings.elements.some((element) => element.name.text === name)) continue;
    const path = (statement.moduleSpecifier as ts.StringLiteral).text.replace(/\.js$/, '.ts');
    const file = join(dirname(source.fileName), path);
    if (path.startsWith('.') && existsSync(file)) {
      return declaredValue(parseSource(file).statements, name);
    }
  }
  return undefined;
}

/** The text of the doc comment in front of a node, without `@` tags; empty if it has none. */
export function docCommentOf(node: ts.Node, source: ts.SourceFile, from = node.pos): string {
  const comments = source.text.slice(from, node.getStart(source)).match(/\/\*\*.*?\*\//gs) ?? [];
  const text = (comments.at(-1) ?? '')
    .replace(/^\/\*\*|\*\/$/g, '')
    .replace(/^[ \t]*\* ?/gm, '')
    .replace(/^@.*/ms, '');
  return text
    .replace(
      /\{@link ([^}|]+?)(\.[^}]*)?\}/g,
      (_, name: string, member = '') => `\`${name}${member}\``,
    )
    .trim();
}
