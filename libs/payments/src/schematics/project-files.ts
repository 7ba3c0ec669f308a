import { readFileSync } from 'node:fs';
import { posix } from 'node:path';
import type { Tree } from '@angular-devkit/schematics';

/** The parts of package.json that the schematics read and change. */
export interface ProjectManifest {
  type?: string;
  scripts?: Record<string, string>;
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
  jest?: JestConfig;
}

/** The part of a configuration of Jest that the schematics change. */
export interface JestConfig {
  transformIgnorePatterns?: string[];
}

export function readManifest(tree: Tree): ProjectManifest {
  return tree.readJson('package.json') as ProjectManifest;
}

/** Changes a JSON file, and keeps its indentation. Does not write the file if its content is the same. */
export function changeJson(
  tree: Tree,
  path: string,
  change: (json: ProjectManifest & JestConfig) => void,
): void {
  const before = tree.readText(path);
  const json = JSON.parse(before) as ProjectManifest & JestConfig;
  change(json);
  if (JSON.stringify(json) === JSON.stringify(JSON.parse(before))) return;
  const [, indentation] = /^([ \t]+)/m.exec(before) ?? [];
  overwrite(tree, path, `${JSON.stringify(json, null, indentation ?? 2)}\n`);
}

/** Overwrites a text file, and keeps its line ends. */
function overwrite(tree: Tree, path: string, content: string): void {
  const end = tree.readText(path).includes('\r\n') ? '\r\n' : '\n';
  tree.overwrite(path, content.replaceAll(/\r?\n/g, end));
}

/**
 * Adds the lines that a text file lacks, each below its comment. A line is not missing if a line of the file begins
 * with the same text, such as `NAME=value` for `NAME=`, also if that line is a comment. Creates the file if it does not
 * exist.
 */
export function addLines(
  tree: Tree,
  path: string,
  comments: Readonly<Record<string, string>>,
): void {
  const before = tree.exists(path) ? tree.readText(path) : '';
  const present = before.split('\n').map((line) => line.replace(/^# */, ''));
  const added = Object.entries(comments)
    .filter(([line]) => !present.some((one) => one.startsWith(line)))
    .map(([line, comment]) => `# ${comment}\n${line}\n`);
  if (added.length === 0) return;
  const start = before === '' || before.endsWith('\n') ? before : `${before}\n`;
  const after = start + added.join('');
  if (tree.exists(path)) overwrite(tree, path, after);
  else tree.create(path, after);
}

/**
 * Changes the file of a module.
 *
 * @throws Error that names the file if the change fails.
 */
export function changeModule(tree: Tree, path: string, change: (source: string) => string): void {
  const before = tree.readText(path);
  try {
    const after = change(before);
    if (after !== before) overwrite(tree, path, after);
  } catch (error) {
    throw new Error(`${path}: ${(error as Error).message}`, { cause: error });
  }
}

/**
 * Returns the module specifier with which a file imports another file of the project. The specifier ends in `.js` only
 * if the project uses ES modules.
 */
export function relativeSpecifier(tree: Tree, from: string, to: string): string {
  const path = posix.relative(posix.join('/', posix.dirname(from)), posix.join('/', to));
  const suffix = readManifest(tree).type === 'module' ? '.js' : '';
  return `${path.startsWith('.') ? '' : './'}${path}${suffix}`;
}

/** Reads a template of a file, from the folder `schematics` of the package. */
export function template(name: string): string {
  return readFileSync(new URL(`../../schematics/${name}.template`, import.meta.url), 'utf8');
}
