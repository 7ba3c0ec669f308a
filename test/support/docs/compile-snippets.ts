import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { randomUUID } from 'node:crypto';
import ts from 'typescript';
import { PAGE_CONTEXT } from './page-context.js';
import { READER_OPTIONS } from './readme-program.js';

/** The errors of the compiler, by page. A page without errors has an empty list; a page without TypeScript is missing. */
export type SnippetErrors = ReadonlyMap<string, readonly string[]>;

/**
 * Compiles the `ts` code blocks of pages as in a strict project of a reader, one folder for each page. A block without a
 * file name is a file of its own.
 *
 * @param wanted returns whether to compile a block, by its page and file
 */
export function compileSnippets(
  root: string,
  pages: readonly string[],
  wanted: (page: string, file: string) => boolean,
): SnippetErrors {
  // Below the repository, so that packages are found.
  const folder = join(root, 'node_modules/.cache', `snippets-${process.pid}-${randomUUID()}`);
  const errors = new Map<string, string[]>();
  const pageOf = new Map<string, string>();
  try {
    for (const [index, page] of pages.entries()) {
      const blocks = [...blocksOf(readFileSync(join(root, page), 'utf8'))].filter(([file]) =>
        wanted(page, file),
      );
      if (blocks.length === 0) continue;
      errors.set(page, []);
      const pageFolder = join(folder, String(index));
      const written = { ...PAGE_CONTEXT[page], ...Object.fromEntries(blocks) };
      for (const [name, code] of Object.entries(written)) {
        const file = join(pageFolder, name);
        mkdirSync(dirname(file), { recursive: true });
        writeFileSync(file, code);
        pageOf.set(file, page);
      }
    }
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
    const options = { ...READER_OPTIONS, noEmit: true };
    const program = ts.createProgram([...pageOf.keys()], options);
    for (const { file, start = 0, messageText } of ts.getPreEmitDiagnostics(program)) {
      const message = ts.flattenDiagnosticMessageText(messageText, '\n');
      const page = file === undefined ? undefined : pageOf.get(file.fileName);
      if (file === undefined || page === undefined) throw new Error(message);
      const line = file.getLineAndCharacterOfPosition(start).line + 1;
      const name = relative(folder, file.fileName).replace(/^\d+\//, '');
      errors.get(page)!.push(`${name}:${line} ${message}`);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return errors;
}

/** The file name and the code of each `ts` block. */
function* blocksOf(text: string): Generator<[string, string]> {
  let unnamed = 0;
  const names = new Set<string>();
  for (const [, info, code] of text.matchAll(/^```(?:ts|typescript)\b([^\n]*)\n(.*?)^```$/gms)) {
    const file = /\bfile=(\S+)/.exec(info!)?.[1];
    // A part of a file of `examples/`, which the smoke test compiles.
    if (file === undefined && info!.includes(' example=')) continue;
    const name = file ?? `block-${++unnamed}.ts`;
    if (names.has(name)) throw new Error(`a page has two blocks with the name ${name}`);
    names.add(name);
    yield [name, code!];
  }
}
