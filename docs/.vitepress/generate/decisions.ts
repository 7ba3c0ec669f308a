import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const TITLE = /^# (\d+)\. (.+)$/m;
/** The first sentence after the heading `## Status`. Its links may contain full stops. */
const STATUS = /^## Status\n+((?:\([^)]*\)|[^.(])+)\./m;

/**
 * A table of all decision records with their status.
 *
 * @throws Error if a record has no title with a number, or no section `## Status`.
 */
export function decisionTable(root: string): string {
  const folder = join(root, 'docs/decisions');
  const files = readdirSync(folder)
    .filter((file) => /^\d{4}-.*\.md$/.test(file))
    .toSorted();
  const rows = files.map((file) => {
    const text = readFileSync(join(folder, file), 'utf8');
    const [, number, title] = TITLE.exec(text) ?? [];
    const status = STATUS.exec(text)?.[1]?.replaceAll('\n', ' ');
    if (number === undefined || status === undefined) {
      throw new Error(
        `docs/decisions/${file} needs a title "# <number>. <decision>" and a section "## Status".`,
      );
    }
    return `| ${number} | [${title}](${file}) | ${status} |`;
  });
  return ['| No. | Decision | Status |', '| --- | --- | --- |', ...rows].join('\n');
}
