import { createRequire } from 'node:module';
import { posix } from 'node:path';
import type { DirEntry, Rule, SchematicContext, Tree } from '@angular-devkit/schematics';
import { REQUIRED_VARIABLES } from '../payments-environment.js';
import { addHandler } from './handler.js';
import { addImport, addToModule, bootstrappedModule, importedFrom } from './module-source.js';
import {
  addLines,
  changeJson,
  changeModule,
  readManifest,
  relativeSpecifier,
  template,
} from './project-files.js';
import type { JestConfig } from './project-files.js';

/** Options of the schematic `nest-add`, see `schematics/nest-add.json`. */
export interface NestAddOptions {
  readonly sourceRoot: string;
  readonly inbox: 'memory' | 'sqlite' | 'postgres';
  readonly console: Flag;
  readonly emulator: Flag;
}

/** A flag of the command line: a boolean, or a text, because `@nestjs/cli` 11 passes a flag with a value as a text. */
type Flag = boolean | 'true' | 'false';

const isSet = (flag: Flag): boolean => String(flag) === 'true';

const { version, peerDependencies } = createRequire(import.meta.url)('../../package.json') as {
  version: string;
  peerDependencies: Record<string, string>;
};
/**
 * The version ranges of the packages that the schematic adds. If a package has two ranges, the first is for Nest 11.
 */
const VERSIONS: Readonly<Record<string, string>> = {
  ...peerDependencies,
  '@nestjs/config': '^4.0.0 || ^12.0.0',
  '@types/pg': '^8.11.0',
  'nestjs-payments-console': version,
  'payments-emulator': version,
};
const EMULATOR =
  'payments-emulator --webhook-url http://127.0.0.1:3000/webhooks/payments --seed development --save-env .env';
const SQLITE_FILE = 'payments-inbox.db';
/** Jest transforms these packages, because they are ES modules. */
const JEST_PATTERN = '/node_modules/(?!(\\.pnpm|nestjs-payments[^/]*)/)';

/** The names that a file imports, by module specifier. */
type Imports = Readonly<Record<string, readonly string[]>>;

/** What the root module imports for each inbox, and the options of `PaymentsModule`. */
const INBOXES: Readonly<Record<NestAddOptions['inbox'], { imports: Imports; options: string }>> = {
  memory: {
    imports: { 'nestjs-payments': ['PaymentsModule', 'paymentsConfig'] },
    options: '...paymentsConfig.asProvider()',
  },
  sqlite: durable('sqliteInbox', 'nestjs-payments/sqlite', `{ file: '${SQLITE_FILE}' }`),
  postgres: durable(
    'postgresInbox',
    'nestjs-payments/postgres',
    '{ connectionString: process.env.DATABASE_URL }',
  ),
};

function durable(inbox: string, specifier: string, options: string) {
  return {
    imports: {
      'nestjs-payments': ['PaymentsModule', 'readPaymentsEnvironment'],
      [specifier]: [inbox],
    },
    options: `useFactory: () => ({
        ...readPaymentsEnvironment(),
        inbox: ${inbox}(${options}),
      })`,
  };
}

/**
 * Adds the module, a handler, its test and the settings to an application. Does not change what the application already
 * has, so a second run changes nothing.
 *
 * @throws Error if the root module cannot be found in `main.ts`, or if the metadata of the root module are not
 *   literals.
 */
export function nestAdd(options: NestAddOptions): Rule {
  return (tree, context) => {
    const { sourceRoot } = options;
    const module = rootModule(tree, sourceRoot);
    // package.json belongs to all applications of a monorepo, so only the source code shows whether this application
    // uses the package.
    const needsConfigModule = !mentions(tree.getDir(sourceRoot), '@nestjs/config');
    addPackages(tree, context, options);
    configureJest(tree, sourceRoot);
    addSettings(tree, options);

    if (needsConfigModule) {
      register(
        tree,
        module,
        'ConfigModule',
        { '@nestjs/config': ['ConfigModule'] },
        'ConfigModule.forRoot()',
      );
    }
    const { imports, options: text } = INBOXES[options.inbox];
    register(
      tree,
      module,
      'PaymentsModule',
      imports,
      `PaymentsModule.forRootAsync({\n      isGlobal: true,\n      ${text},\n    })`,
    );
    const folder = posix.join(sourceRoot, 'payments');
    if (isSet(options.console)) addConsole(tree, module, folder);
    if (!tree.exists(posix.join(folder, 'payments.handler.ts'))) {
      addHandler(tree, module, { folder, name: 'payments', spec: true });
    }
  };
}

/** Adds an element to the imports of a module, unless its file imports the class. */
function register(
  tree: Tree,
  module: string,
  className: string,
  imports: Imports,
  element: string,
): void {
  changeModule(tree, module, (source) => {
    if (importedFrom(source, className) !== undefined) return source;
    const withImports = Object.entries(imports).reduce(
      (code, [specifier, names]) => addImport(code, names, specifier),
      source,
    );
    return addToModule(withImports, 'imports', element);
  });
}

/** Returns the file of the module that `main.ts` passes to `NestFactory`. */
function rootModule(tree: Tree, sourceRoot: string): string {
  const main = posix.join(sourceRoot, 'main.ts');
  const source = tree.exists(main) ? tree.readText(main) : '';
  const specifier = importedFrom(source, bootstrappedModule(source) ?? '');
  const file = `${posix.join(sourceRoot, specifier?.replace(/\.[jt]s$/, '') ?? '')}.ts`;
  if (specifier?.startsWith('.') && tree.exists(file)) return file;
  throw new Error(
    `${main} must call NestFactory.create() with a module that it imports by a relative path.`,
  );
}

function mentions(folder: DirEntry, text: string): boolean {
  return (
    folder.subfiles.some(
      (file) => file.endsWith('.ts') && folder.file(file)?.content.includes(text),
    ) || folder.subdirs.some((name) => mentions(folder.dir(name), text))
  );
}

function addPackages(tree: Tree, context: SchematicContext, options: NestAddOptions): void {
  const { inbox } = options;
  const [console, emulator] = [isSet(options.console), isSet(options.emulator)];
  const needed = {
    dependencies: [
      '@nestjs/config',
      ...(console ? ['class-transformer', 'class-validator', 'nestjs-payments-console'] : []),
      ...(inbox === 'postgres' ? ['pg'] : []),
    ],
    devDependencies: [
      ...(emulator ? ['payments-emulator'] : []),
      ...(inbox === 'postgres' ? ['@types/pg'] : []),
    ],
  };
  let installs = false;
  changeJson(tree, 'package.json', (manifest) => {
    const installed = { ...manifest.devDependencies, ...manifest.dependencies };
    const major = Number(/\d+/.exec(installed['@nestjs/core'] ?? '')?.[0] ?? 12);
    for (const kind of ['dependencies', 'devDependencies'] as const) {
      const missing = needed[kind].filter((name) => !(name in installed));
      if (missing.length === 0) continue;
      installs = true;
      const all = missing.map((name) => [name, rangeOf(name, major)] as const);
      manifest[kind] = Object.fromEntries(
        [...Object.entries(manifest[kind] ?? {}), ...all].toSorted(([a], [b]) => (a < b ? -1 : 1)),
      );
    }
    if (emulator) {
      manifest.scripts ??= {};
      manifest.scripts['payments:emulator'] ??= EMULATOR;
    }
  });
  // Without packageManager, the workflow uses the package manager of the lock file.
  const install = { name: 'node-package', options: { command: 'install', quiet: true } };
  if (installs) context.addTask({ toConfiguration: () => install });
}

/** Returns the version range of a package for a major version of Nest. */
function rangeOf(name: string, major: number): string {
  return VERSIONS[name]!.split(' || ').at(major < 12 ? 0 : -1)!;
}

/** Configures Jest to transform the packages of this project. Applications of `@nestjs/cli` 11 use Jest. */
function configureJest(tree: Tree, sourceRoot: string): void {
  if (readManifest(tree).jest === undefined) return;
  const configure = (jest: JestConfig) => void (jest.transformIgnorePatterns ??= [JEST_PATTERN]);
  changeJson(tree, 'package.json', ({ jest }) => configure(jest!));
  const e2e = posix.join(sourceRoot, '../test/jest-e2e.json');
  if (tree.exists(e2e)) changeJson(tree, e2e, configure);
}

function addSettings(tree: Tree, { inbox, console }: NestAddOptions): void {
  const variables = {
    ...REQUIRED_VARIABLES,
    ...(inbox === 'postgres' && { DATABASE_URL: 'the PostgreSQL database of the inbox' }),
    ...(isSet(console) && {
      CONSOLE_PASSWORD: 'the password of the user ops of the console, at least 12 characters',
    }),
  };
  const lines = Object.entries(variables).map(([name, content]) => [`${name}=`, content]);
  addLines(tree, '.env.example', Object.fromEntries(lines) as Record<string, string>);
  if (inbox === 'sqlite') {
    addLines(tree, '.gitignore', { [`${SQLITE_FILE}*`]: 'the stored events of nestjs-payments' });
  }
}

function addConsole(tree: Tree, module: string, folder: string): void {
  const guard = posix.join(folder, 'console.guard');
  if (!tree.exists(`${guard}.ts`)) tree.create(`${guard}.ts`, template('console-guard'));
  register(
    tree,
    module,
    'PaymentsConsoleModule',
    {
      'nestjs-payments-console': ['PaymentsConsoleModule'],
      [relativeSpecifier(tree, module, guard)]: ['ConsoleGuard'],
    },
    `PaymentsConsoleModule.register({
      path: 'ops/payments',
      guards: [ConsoleGuard],
    })`,
  );
}
