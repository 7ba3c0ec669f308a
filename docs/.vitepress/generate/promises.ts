import { globSync, readFileSync } from 'node:fs';
import { basename, join, posix } from 'node:path';

/** Files whose titles name promises: specs, the cases of the inbox contract, and the parts of the smoke test. */
const TESTS = [
  'libs/*/src/**/*.spec.ts',
  'test/store-contract/*-cases.ts',
  'test/engine-contract/*.ts',
  'apps/*/src/**/*.spec.ts',
  'test/{e2e,slow,simulation}/**/*.spec.ts',
  'test/smoke/parts/*.ts',
];
const ID = /['"`]([A-Z]{2}-\d{2})\b/g;
const PROMISE = /^- \*\*([A-Z]{2}-\d{2})\*\* (.+)$/;
/** Start of the generated part of a promise's line. */
const PROVEN = ' Proven by ';

/** The promises of `docs/promises.md`: text by id. */
export function readPromises(page: string): Map<string, string> {
  const found = page.split('\n').map((line) => PROMISE.exec(line));
  return new Map(found.flatMap((match) => (match ? [[match[1] ?? '', match[2] ?? '']] : [])));
}

/** The test files with titles of each promise: paths from the root of the repository, by id. */
export function findProofs(root: string): Map<string, string[]> {
  const proofs = new Map<string, string[]>();
  for (const file of globSync(TESTS, { cwd: root, exclude: isInstalled }).toSorted()) {
    const ids = readFileSync(join(root, file), 'utf8').matchAll(ID);
    for (const id of new Set([...ids].map((match) => match[1] ?? ''))) {
      proofs.set(id, [...(proofs.get(id) ?? []), file.replaceAll('\\', '/')]);
    }
  }
  return proofs;
}

/** Returns the page with links to the tests at the end of each promise. */
export function linkProofs(page: string, proofs: ReadonlyMap<string, readonly string[]>): string {
  const lines = page.split('\n').map((line) => {
    const id = PROMISE.exec(line)?.[1];
    if (id === undefined) return line;
    const [promise] = line.split(PROVEN);
    const links = (proofs.get(id) ?? []).map(
      (file) => `[${nameOf(file)}](${posix.join('..', file)})`,
    );
    return links.length === 0 ? promise : `${promise}${PROVEN}${links.join(', ')}.`;
  });
  return lines.join('\n');
}

/** The name of the file; of an end-to-end test, with the folder of its area. */
function nameOf(file: string): string {
  const named = file.startsWith('test/e2e/') ? posix.relative('test/e2e', file) : basename(file);
  return named.replace(/(\.spec)?\.ts$/, '');
}

function isInstalled(path: string): boolean {
  return /(^|[\\/])(node_modules|dist)$/.test(path);
}
