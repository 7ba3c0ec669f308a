import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** The code blocks of a page that name a file, compiled as a reader's strict project would. */
export class ReadmeProgram {
  /** Where the compiled files are; below the repository, so that packages are found. */
  readonly folder = join(ROOT, 'node_modules/.cache', `readme-${process.pid}-${randomUUID()}`);
  readonly files: string[];
  /** What the compiler says. */
  readonly complaints: string[];

  /** @param globals declarations of what the page's code finds in the global scope */
  constructor(page: string, globals = '') {
    const text = readFileSync(join(ROOT, page), 'utf8');
    const blocks = [...text.matchAll(/^```ts file=(\S+)\n(.*?)^```/gms)];
    mkdirSync(this.folder, { recursive: true });
    writeFileSync(join(this.folder, 'package.json'), '{"type":"module"}');
    this.files = blocks.map(([, name, code]) => {
      writeFileSync(join(this.folder, name!), code!);
      return name!;
    });
    writeFileSync(join(this.folder, 'globals.d.ts'), globals);
    const program = ts.createProgram(
      [...this.files, 'globals.d.ts'].map((name) => join(this.folder, name)),
      {
        target: ts.ScriptTarget.ES2023,
        module: ts.ModuleKind.NodeNext,
        moduleResolution: ts.ModuleResolutionKind.NodeNext,
        types: ['node'],
        typeRoots: [join(ROOT, 'node_modules/@types')],
        strict: true,
        experimentalDecorators: true,
        emitDecoratorMetadata: true,
        skipLibCheck: true,
        rootDir: this.folder,
        outDir: this.folder,
      },
    );
    this.complaints = [...ts.getPreEmitDiagnostics(program), ...program.emit().diagnostics].map(
      ({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'),
    );
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
