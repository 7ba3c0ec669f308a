import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/** The options of the compiler in a strict project of a reader. */
export const READER_OPTIONS: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2023,
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  types: ['node'],
  typeRoots: [join(ROOT, 'node_modules/@types')],
  strict: true,
  experimentalDecorators: true,
  emitDecoratorMetadata: true,
  skipLibCheck: true,
};

/**
 * The code blocks of a page that name a file, compiled without type checks: `test/e2e/docs/snippets.spec.ts` checks the
 * types.
 */
export class ReadmeProgram {
  /** Where the compiled files are; below the repository, so that packages are found. */
  readonly folder = join(ROOT, 'node_modules/.cache', `readme-${process.pid}-${randomUUID()}`);

  /** @param others files next to the blocks, by name: what they import, or declarations of globals */
  constructor(page: string, others: Readonly<Record<string, string>> = {}) {
    const text = readFileSync(join(ROOT, page), 'utf8');
    const blocks = [...text.matchAll(/^```ts file=(\S+)[^\n]*\n(.*?)^```/gms)];
    mkdirSync(this.folder, { recursive: true });
    writeFileSync(join(this.folder, 'package.json'), '{"type":"module"}');
    const written: Record<string, string> = { ...others };
    for (const [, name, code] of blocks) written[name!] = code!;
    for (const [name, code] of Object.entries(written)) {
      mkdirSync(dirname(join(this.folder, name)), { recursive: true });
      writeFileSync(join(this.folder, name), code);
    }
    ts.createProgram(
      Object.keys(written).map((name) => join(this.folder, name)),
      { ...READER_OPTIONS, rootDir: this.folder, outDir: this.folder },
    ).emit();
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
