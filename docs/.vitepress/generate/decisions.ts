import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * A list of all decision records.
 *
 * @throws Error if a record has no title with a number.
 */
export function decisionList(root: string): string {
  const folder = join(root, 'docs/decisions');
  const files = readdirSync(folder).filter((file) => /^\d{4}-.*\.md$/.test(file));
  return files
    .toSorted()
    .map((file) => {
      const title = /^# (\d+\. .+)$/m.exec(readFileSync(join(folder, file), 'utf8'))?.[1];
      if (title !== undefined) return `- [${title}](${file})`;
      throw new Error(`docs/decisions/${file} needs a title "# <number>. <decision>".`);
    })
    .join('\n');
}
