import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { format, resolveConfig } from 'prettier';
import { decisionList } from './decisions.ts';
import { errorCodeSections } from './error-codes.ts';
import { faultTable } from './faults.ts';
import { replacePart } from './generated-part.ts';
import { defaultRetries } from './default-retries.ts';
import { findProofs, linkProofs } from './promises.ts';
import { environmentTable, helpText, OPTION_GROUPS, optionSections } from './settings.ts';
import { versionTable } from './versions.ts';

/** The formatted text of each page with generated parts, by path from the root of the repository. */
export async function generatePages(root: string): Promise<Map<string, string>> {
  const pages: Record<string, (page: string) => string> = {
    'docs/promises.md': (page) => linkProofs(page, findProofs(root)),
    'docs/decisions/index.md': (page) => replacePart(page, 'decisions', decisionList(root)),
    'docs/handle-events.md': (page) => replacePart(page, 'retries', defaultRetries()),
    'docs/troubleshoot.md': (page) => replacePart(page, 'error-codes', errorCodeSections(root)),
    'docs/supported-versions.md': (page) => replacePart(page, 'versions', versionTable(root)),
    'libs/emulator/README.md': (page) => replacePart(page, 'faults', faultTable()),
    'docs/settings.md': (page) => settingsPage(root, page),
  };
  const generated = new Map<string, string>();
  for (const [page, generate] of Object.entries(pages)) {
    const path = join(root, page);
    const text = generate(readFileSync(path, 'utf8'));
    const options = await resolveConfig(path);
    generated.set(page, await format(text, { ...options, filepath: path }));
  }
  return generated;
}

function settingsPage(root: string, page: string): string {
  const parts = {
    ...Object.fromEntries(
      Object.entries(OPTION_GROUPS).map(([name, groups]) => [name, optionSections(root, groups)]),
    ),
    environment: environmentTable(root),
    'emulator-command': helpText(root, 'command-help.ts'),
    'emulator-trigger': helpText(root, 'trigger-command.ts'),
  };
  return Object.entries(parts).reduce((text, [name, part]) => replacePart(text, name, part), page);
}
