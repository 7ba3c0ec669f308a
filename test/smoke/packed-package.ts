import { readdir, readFile } from 'node:fs/promises';
import { isBuiltin } from 'node:module';
import { join } from 'node:path';
import ts from 'typescript';
import { npm, succeed } from '../support/processes/run-command.ts';

/** The fields of package.json that the checks read. */
interface Manifest {
  name: string;
  exports: Record<string, string | { types: string; default: string }>;
  dependencies?: Record<string, string>;
  peerDependencies?: Record<string, string>;
  peerDependenciesMeta?: Record<string, { optional?: boolean }>;
  homepage?: string;
  bugs?: { url?: string };
  repository?: { directory?: string };
}

/** Files that may be in a tarball: compiled files, files of schematics and for the browser, and documents in the root folder. */
const ALLOWED = [
  /^dist\/(?:[\w.-]+\/)*[\w.-]+\.(?:js|js\.map|d\.ts)$/,
  /^schematics\/[\w-]+\.(?:json|template)$/,
  /^pages\.js$/,
  /^pages\/[\w.-]+\.(?:js|css|html|svg)$/,
  /^(?:package\.json|README\.md|CHANGELOG\.md|LICENSE)$/,
];
const FORBIDDEN = [/\.spec\./, /\.tsbuildinfo$/, /\.d\.ts\.map$/];

/** A package of the workspace, packed as it would be published. */
export class PackedPackage {
  readonly manifest: Manifest;
  readonly files: readonly string[];
  readonly tarball: string;
  readonly #root: string;
  readonly #source: string;

  private constructor(
    manifest: Manifest,
    files: readonly string[],
    paths: { tarball: string; root: string; source: string },
  ) {
    this.manifest = manifest;
    this.files = files;
    this.tarball = paths.tarball;
    this.#root = paths.root;
    this.#source = paths.source;
  }

  /** The import specifiers of the package's entries. */
  get entries(): string[] {
    const { name, exports } = this.manifest;
    return Object.entries(exports)
      .filter(([, target]) => typeof target === 'object')
      .map(([path]) => `${name}${path.slice(1)}`);
  }

  /** Path of an entry's declaration file within the package. */
  typesOf(entry: string): string {
    const target = this.manifest.exports[`.${entry.slice(this.manifest.name.length)}`];
    return typeof target === 'object' ? target.types.replace(/^\.\//, '') : '';
  }

  /** Packs the compiled package. The npm script builds it before. */
  static async pack(root: string, folder: string, destination: string): Promise<PackedPackage> {
    const source = join(root, folder);
    const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', destination];
    const { stdout } = await npm(args, source);
    const packed = JSON.parse(stdout) as
      { filename: string; files: { path: string }[] }[] | Record<string, never>;
    const [{ filename, files }] = Object.values(packed) as [
      { filename: string; files: { path: string }[] },
    ];
    const manifest = JSON.parse(await readFile(join(source, 'package.json'), 'utf8')) as Manifest;
    const paths = { tarball: join(destination, filename), root, source };
    return new PackedPackage(
      manifest,
      files.map(({ path }) => path),
      paths,
    );
  }

  /**
   * @throws if the tarball has a file that users do not need, has a compiled file without a source, or lacks a file.
   */
  async containsOnlyItsBuild(): Promise<void> {
    const foreign = this.files.filter(
      (file) =>
        !ALLOWED.some((pattern) => pattern.test(file)) ||
        FORBIDDEN.some((pattern) => pattern.test(file)),
    );
    if (foreign.length > 0)
      throw new Error(`files that do not belong in the tarball: ${foreign.join(', ')}`);
    const sources = await readdir(join(this.#source, 'src'), { recursive: true });
    const stale = this.files.filter(
      (file) =>
        file.endsWith('.js') &&
        file.startsWith('dist/') &&
        !sources.includes(file.replace(/^dist\//, '').replace(/\.js$/, '.ts')),
    );
    if (stale.length > 0) throw new Error(`compiled files without a source: ${stale.join(', ')}`);
    const documents = (await readdir(this.#source)).filter((file) =>
      /^(README\.md|CHANGELOG\.md|LICENSE)$/.test(file),
    );
    const pages = (await readdir(join(this.#source, 'pages')).catch(() => []))
      .filter((file) => !file.endsWith('.json'))
      .map((file) => `pages/${file}`);
    const missing = [
      ...documents,
      ...pages,
      'LICENSE',
      'package.json',
      'dist/index.js',
      'dist/index.d.ts',
    ].filter((file) => !this.files.includes(file));
    if (missing.length > 0) throw new Error(`missing files: ${missing.join(', ')}`);
  }

  /**
   * @throws if a compiled file imports a package that package.json does not declare, or if package.json declares a
   * package that no compiled file imports.
   */
  async importsMatchDependencies(): Promise<void> {
    const { dependencies = {}, peerDependencies = {}, name } = this.manifest;
    const imported = new Map<string, string>();
    for (const file of this.files.filter((path) => /\.(js|d\.ts)$/.test(path))) {
      const text = await readFile(join(this.#source, file), 'utf8');
      const { importedFiles, typeReferenceDirectives } = ts.preProcessFile(text, true, true);
      for (const { fileName } of [...importedFiles, ...typeReferenceDirectives]) {
        if (!fileName.startsWith('.')) imported.set(packageOf(fileName), file);
      }
    }
    const declared = new Set([name, ...Object.keys({ ...dependencies, ...peerDependencies })]);
    const undeclared = [...imported].filter(
      ([module]) => !isBuiltin(module) && !declared.has(module),
    );
    if (undeclared.length > 0) {
      throw new Error(undeclared.map(([module, file]) => `${file} imports ${module}`).join(', '));
    }
    // Nest needs reflect-metadata, and the application chooses its version.
    const unused = [...declared].filter(
      (module) => !imported.has(module) && module !== name && module !== 'reflect-metadata',
    );
    if (unused.length > 0) throw new Error(`declared but not imported: ${unused.join(', ')}`);
  }

  /** @throws if a file in the tarball refers to docs/ by path, or package.json has no link to the repository. */
  async hasNoBrokenReferences(): Promise<void> {
    const { homepage, bugs, repository, name } = this.manifest;
    if (!homepage || !bugs?.url || !repository?.directory) {
      throw new Error(`package.json of ${name} lacks "homepage", "bugs" or "repository".`);
    }
    for (const file of this.files.filter((path) => /\.(js|d\.ts|html|md)$/.test(path))) {
      const text = await readFile(join(this.#source, file), 'utf8');
      const [document] = /(?<!https:\S*)\bdocs\/[\w/.-]+/.exec(text) ?? [];
      if (document !== undefined) throw new Error(`${file} refers to ${document}`);
    }
  }

  /** @throws with publint's report if it has an error, a warning or a suggestion. */
  async passesPublint(): Promise<void> {
    const cli = join(this.#root, 'node_modules/publint/src/cli.js');
    const args = [cli, 'run', this.tarball, '--strict'];
    const { output } = await succeed(process.execPath, args, { cwd: this.#root });
    if (!output.includes('All good!')) throw new Error(output);
  }

  /**
   * Checks every `moduleResolution`, including `node` of older CommonJS applications. The rule `cjs-resolves-to-esm` of
   * attw is off. This rule reports that `require()` loads an ES module, but every Node that `engines` allows supports
   * this. The CommonJS applications of the other parts prove it.
   *
   * @throws with attw's report if a type does not resolve, or does not describe the code.
   */
  async passesAttw(): Promise<void> {
    const cli = join(this.#root, 'node_modules/@arethetypeswrong/cli/dist/index.js');
    const rules = ['--profile', 'strict', '--ignore-rules', 'cjs-resolves-to-esm'];
    const args = [cli, this.tarball, ...rules, '--no-definitely-typed', '--format', 'ascii'];
    await succeed(process.execPath, args, { cwd: this.#root });
  }
}

/** The package name of an import specifier: `@scope/name` of `@scope/name/path`. Built-in modules keep their name. */
function packageOf(specifier: string): string {
  if (specifier.startsWith('node:')) return specifier;
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');
}
