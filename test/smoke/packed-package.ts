import { readdir, readFile } from 'node:fs/promises';
import { isBuiltin } from 'node:module';
import { join } from 'node:path';
import ts from 'typescript';
import { npm, succeed } from './command.ts';

/** The fields of package.json that are looked at here. */
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

/** What may be in a tarball: compiled files, what a browser is served, and a few documents at its top. */
const ALLOWED = [
  /^dist\/(?:[\w.-]+\/)*[\w.-]+\.(?:js|js\.map|d\.ts)$/,
  /^pages\.js$/,
  /^pages\/[\w.-]+\.(?:js|css|html|svg)$/,
  /^(?:package\.json|README\.md|CHANGELOG\.md|LICENSE)$/,
];
const REFUSED = [/\.spec\./, /\.tsbuildinfo$/, /\.d\.ts\.map$/];

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

  /** What can be imported of it, as an importer writes it. */
  get entries(): string[] {
    const { name, exports } = this.manifest;
    return Object.entries(exports)
      .filter(([, target]) => typeof target === 'object')
      .map(([path]) => `${name}${path.slice(1)}`);
  }

  /** The declarations of one of them, within the package. */
  typesOf(entry: string): string {
    const target = this.manifest.exports[`.${entry.slice(this.manifest.name.length)}`];
    return typeof target === 'object' ? target.types.replace(/^\.\//, '') : '';
  }

  /** Packs what is built. The build itself is the script's that comes before. */
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

  /** @throws where a file is in the tarball that nobody who installs it needs, or one is missing. */
  async holdsNothingButItsBuild(): Promise<void> {
    const foreign = this.files.filter(
      (file) =>
        !ALLOWED.some((pattern) => pattern.test(file)) ||
        REFUSED.some((pattern) => pattern.test(file)),
    );
    if (foreign.length > 0) throw new Error(`does not belong there: ${foreign.join(', ')}`);
    const sources = await readdir(join(this.#source, 'src'), { recursive: true });
    const stale = this.files.filter(
      (file) =>
        file.endsWith('.js') &&
        file.startsWith('dist/') &&
        !sources.includes(file.replace(/^dist\//, '').replace(/\.js$/, '.ts')),
    );
    if (stale.length > 0) throw new Error(`has no source any more: ${stale.join(', ')}`);
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
    if (missing.length > 0) throw new Error(`is missing: ${missing.join(', ')}`);
  }

  /** @throws where a compiled file imports a package that package.json does not name, or names in vain. */
  async importsOnlyWhatItDeclares(): Promise<void> {
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
    const undeclared = [...imported].filter(([it]) => !isBuiltin(it) && !declared.has(it));
    if (undeclared.length > 0) {
      throw new Error(undeclared.map(([it, file]) => `${file} imports ${it}`).join(', '));
    }
    // Nest itself needs it, and the application that installs Nest chooses it.
    const unused = [...declared].filter(
      (it) => !imported.has(it) && it !== name && it !== 'reflect-metadata',
    );
    if (unused.length > 0) throw new Error(`declares in vain: ${unused.join(', ')}`);
  }

  /** @throws if a shipped file refers to a document of the repository by its path, or package.json does not link to it. */
  async refersToNothingItLacks(): Promise<void> {
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

  /** @throws with publint's report where it has anything to say, a suggestion included. */
  async pleasesPublint(): Promise<void> {
    const cli = join(this.#root, 'node_modules/publint/src/cli.js');
    const args = [cli, 'run', this.tarball, '--strict'];
    const { output } = await succeed(process.execPath, args, { cwd: this.#root });
    if (!output.includes('All good!')) throw new Error(output);
  }

  /**
   * Every way to resolve modules counts, `moduleResolution: node` of older CommonJS applications included. One rule of
   * attw does not apply: `cjs-resolves-to-esm` reports that `require()` loads an ES module, which every Node that
   * `engines` allows can do. The CommonJS applications of the other parts prove that it works.
   *
   * @throws with attw's report if a type does not resolve, or does not describe the code.
   */
  async pleasesAttw(): Promise<void> {
    const cli = join(this.#root, 'node_modules/@arethetypeswrong/cli/dist/index.js');
    const rules = ['--profile', 'strict', '--ignore-rules', 'cjs-resolves-to-esm'];
    const args = [cli, this.tarball, ...rules, '--no-definitely-typed', '--format', 'ascii'];
    await succeed(process.execPath, args, { cwd: this.#root });
  }
}

/** `@scope/name` of `@scope/name/path`; a builtin is its own. */
function packageOf(specifier: string): string {
  if (specifier.startsWith('node:')) return specifier;
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');
}
