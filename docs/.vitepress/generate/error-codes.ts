import { globSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { ENGINE_PACKAGES } from '../../../release/workspace.ts';
import { callMessages } from './call-messages.ts';
import { docCommentOf, parseSource, textOf, walk } from './source-text.ts';

const CODES = 'libs/payments/src/errors/payments-error-code.ts';
const STATUSES = 'libs/payments/src/webhook/webhook-rejection.ts';
/** Files with the messages of errors. */
const SOURCES = ['libs/payments', 'libs/console', ...ENGINE_PACKAGES].map(
  (folder) => `${folder}/src/**/*.ts`,
);
/** Error classes whose constructor has no parameter for the code: the code that it sets, and the index of the message. */
const SUBCLASSES: Partial<Record<string, { code: string; message: number }>> = {
  PostgresInboxError: { code: 'inbox_unavailable', message: 0 },
  AdmissionCheckError: { code: 'request_rejected', message: 1 },
};
/** Specs, and the file whose messages {@link callMessages} returns complete. */
const SKIPPED = /\.spec\.ts$|api-error\.ts$/;
/** A text with fewer known words is not a message that a reader can recognise. */
const FOUR_WORDS = /(\w{2,}\W+){3}\w{2,}/;
/** A page stays readable if a code has many messages; the first are shown. */
const MAX_MESSAGES = 8;

interface ErrorCode {
  readonly code: string;
  readonly cause: string;
  readonly fix: string;
}

/**
 * A section for each error code, grouped: cause, fix, status of the response to a webhook request, and messages.
 *
 * @throws Error if a code has no cause, no fix or no message.
 */
export function errorCodeSections(root: string): string {
  const groups = readErrorCodes(join(root, CODES));
  const statuses = readStatuses(join(root, STATUSES));
  const messages = readMessages(root);
  for (const [code, message] of callMessages()) {
    messages.set(code, [message, ...(messages.get(code) ?? [])]);
  }
  const parts: string[] = [];
  for (const [group, codes] of groups) {
    parts.push(`### ${group}`);
    for (const { code, cause, fix } of codes) {
      const found = [...new Set(messages.get(code) ?? [])];
      if (found.length === 0) throw new Error(`The error code "${code}" has no message.`);
      const status = statuses.get(code);
      parts.push(
        `#### \`${code}\``,
        `**Cause:** ${cause}${status === undefined ? '' : ` Response to the webhook request: ${status}.`}`,
        `**Fix:** ${fix}`,
        ['```text', ...found.slice(0, MAX_MESSAGES), '```'].join('\n'),
      );
    }
  }
  return parts.join('\n\n');
}

/** The members of the union of error codes with the text of their doc comments, by group. */
export function readErrorCodes(file: string): Map<string, ErrorCode[]> {
  const source = parseSource(file);
  const union = source.statements.find(ts.isTypeAliasDeclaration)?.type;
  if (union === undefined || !ts.isUnionTypeNode(union)) {
    throw new Error(`${file} has no union of error codes.`);
  }
  const groups = new Map<string, ErrorCode[]>();
  let group: string | undefined;
  // The comment of a member is in front of its `|`, so it starts where the previous member ends.
  let from = union.pos;
  for (const member of union.types) {
    const before = source.text.slice(from, member.getStart(source));
    group = /\/\/ Group: (.+)/.exec(before)?.[1] ?? group;
    const code = member.getText(source).replaceAll("'", '');
    const comment = docCommentOf(member, source, from).replace(/\s+/g, ' ');
    const [, cause, fix] = /^(.+?) Fix: (.+)$/.exec(comment) ?? [];
    if (group === undefined || cause === undefined || fix === undefined) {
      throw new Error(
        `The error code "${code}" needs a group and a doc comment with its cause, and its fix after "Fix:".`,
      );
    }
    groups.set(group, [...(groups.get(group) ?? []), { code, cause, fix: capital(fix) }]);
    from = member.end;
  }
  return groups;
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function readStatuses(file: string): Map<string, string> {
  const statuses = new Map<string, string>();
  walk(parseSource(file), (node) => {
    if (!ts.isVariableDeclaration(node) || node.name.getText() !== 'REJECTION_STATUS') return;
    walk(node, (property) => {
      if (!ts.isPropertyAssignment(property)) return;
      statuses.set(property.name.getText(), textOf(property.initializer));
    });
  });
  return statuses;
}

/** The messages in the source, by code: `new PaymentsError(code, message)`, and objects with `code` and `message`. */
function readMessages(root: string): Map<string, string[]> {
  const messages = new Map<string, string[]>();
  const files = SOURCES.flatMap((pattern) => globSync(pattern, { cwd: root }).toSorted());
  for (const file of files.filter((path) => !SKIPPED.test(path))) {
    const source = parseSource(join(root, file));
    walk(source, (node) => {
      const [code, message] = codeAndMessage(node);
      if (code === undefined || message === undefined || !ts.isStringLiteral(code)) return;
      const texts = textsOf(message, source).filter((text) => FOUR_WORDS.test(text));
      messages.set(code.text, [...(messages.get(code.text) ?? []), ...texts]);
    });
  }
  return messages;
}

function codeAndMessage(node: ts.Node): readonly (ts.Expression | undefined)[] {
  const isCall = ts.isNewExpression(node) || ts.isCallExpression(node);
  if (isCall && ts.isIdentifier(node.expression)) {
    const values = node.arguments ?? [];
    const subclass = SUBCLASSES[node.expression.text];
    if (subclass === undefined) return ts.isNewExpression(node) ? values : [];
    return [ts.factory.createStringLiteral(subclass.code), values[subclass.message]];
  }
  if (isCall && node.expression.kind === ts.SyntaxKind.SuperKeyword) return node.arguments ?? [];
  if (!ts.isObjectLiteralExpression(node)) return [];
  return ['code', 'message'].map((name) => {
    const property = node.properties.find((each) => each.name?.getText() === name);
    if (property === undefined) return undefined;
    if (ts.isPropertyAssignment(property)) return property.initializer;
    return ts.isShorthandPropertyAssignment(property) ? property.name : undefined;
  });
}

/** The texts of a message. In a function that the file calls, one text for each call, with the text of its arguments. */
function textsOf(message: ts.Expression, source: ts.SourceFile): string[] {
  let scope: ts.Node = message;
  while (!ts.isFunctionDeclaration(scope) && !ts.isSourceFile(scope)) scope = scope.parent;
  if (ts.isSourceFile(scope)) return [textOf(message)];
  const { name, parameters } = scope;
  const texts: string[] = [];
  walk(source, (node) => {
    if (!ts.isCallExpression(node) || node.expression.getText() !== name?.text) return;
    const values = parameters.map((parameter, index) => {
      const argument = node.arguments[index];
      return [parameter.name.getText(), argument ? textOf(argument) : ''] as const;
    });
    texts.push(textOf(message, new Map(values)));
  });
  return texts.length === 0 ? [textOf(message)] : texts;
}
