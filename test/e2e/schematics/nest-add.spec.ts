import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { HostTree } from '@angular-devkit/schematics';
import { SchematicTestRunner, UnitTestTree } from '@angular-devkit/schematics/testing';
import { describe, expect, it } from '@jest/globals';
import { checkPaymentsEnvironment } from 'nestjs-payments';
import { check } from 'prettier';
import ts from 'typescript';

const ROOT = new URL('../../../', import.meta.url);
const COLLECTION = fileURLToPath(new URL('libs/payments/schematics/collection.json', ROOT));
const runner = new SchematicTestRunner('nestjs-payments', COLLECTION);

const MODULE = `import { Module } from '@nestjs/common';
import { AppController } from './app.controller.js';
import { AppService } from './app.service.js';

@Module({
  imports: [],
  controllers: [AppController],
  providers: [AppService],
})
export class AppModule {}
`;
const MAIN = `import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';

async function bootstrap() {
  const app = await NestFactory.create(AppModule);
  await app.listen(process.env.PORT ?? 3000);
}
await bootstrap();
`;
const MANIFEST = { type: 'module', dependencies: { '@nestjs/core': '^12.0.1' } };

type Files = Readonly<Record<string, string>>;

/** The files of an application of `nest new` 12 that the schematics read. */
function application(changed: Files = {}): UnitTestTree {
  const files: Files = {
    'package.json': JSON.stringify(MANIFEST),
    'src/main.ts': MAIN,
    'src/app.module.ts': MODULE,
    ...changed,
  };
  const tree = new UnitTestTree(new HostTree());
  for (const [path, content] of Object.entries(files)) tree.create(path, content);
  return tree;
}

/** Files of an application of `nest new` 11. */
const NEST_11: Files = {
  'package.json': JSON.stringify({
    dependencies: { '@nestjs/core': '^11.0.1' },
    jest: { rootDir: 'src' },
  }),
  'src/main.ts': MAIN.replace('.js', ''),
  'src/app.module.ts': MODULE.replaceAll(".js'", "'"),
  'test/jest-e2e.json': '{}',
};

interface Manifest {
  scripts?: Record<string, string>;
  dependencies: Record<string, string>;
  devDependencies?: Record<string, string>;
  jest?: object;
}

const add = (tree: UnitTestTree, options: object = {}): Promise<UnitTestTree> =>
  runner.runSchematic('nest-add', options, tree);
const manifestOf = (tree: UnitTestTree) => tree.readJson('package.json') as unknown as Manifest;
const contentOf = (tree: UnitTestTree) =>
  Object.fromEntries(tree.files.map((file) => [file, tree.readText(file)]));

/** The names of the elements of an array in the metadata of a module. The code must have no syntax error. */
function elementsOf(code: string, property: string): string[] {
  const { diagnostics } = ts.transpileModule(code, { reportDiagnostics: true });
  expect(diagnostics).toEqual([]);
  const file = ts.createSourceFile('module.ts', code, ts.ScriptTarget.Latest);
  const elements = (node: ts.Node): string[] | undefined =>
    ts.isPropertyAssignment(node) &&
    node.name.getText(file) === property &&
    ts.isArrayLiteralExpression(node.initializer)
      ? node.initializer.elements.map((element) => /\w+/.exec(element.getText(file))![0])
      : ts.forEachChild(node, elements);
  return elements(file) ?? [];
}

const COMBINATIONS = ['memory', 'sqlite', 'postgres'].flatMap((inbox) =>
  [false, true].flatMap((console) =>
    [false, true].map((emulator) => ({ inbox, console, emulator })),
  ),
);

describe('nest add nestjs-payments', () => {
  it.each(COMBINATIONS)(
    'AP-17 nest add adds what the flags select, and nothing in a second run: inbox $inbox, console $console, emulator $emulator',
    async (options) => {
      const { inbox, console, emulator } = options;
      // `@nestjs/cli` 11 passes the values of flags as texts.
      const tree = await add(application(), { ...options, emulator: String(emulator) });
      expect(runner.tasks).toMatchObject([{ name: 'node-package' }]);

      const module = tree.readText('src/app.module.ts');
      expect(elementsOf(module, 'imports')).toEqual([
        'ConfigModule',
        'PaymentsModule',
        ...(console ? ['PaymentsConsoleModule'] : []),
      ]);
      expect(elementsOf(module, 'providers')).toEqual(['AppService', 'PaymentsHandler']);
      const stores = { memory: 'paymentsConfig', sqlite: 'sqliteInbox', postgres: 'postgresInbox' };
      for (const [name, store] of Object.entries(stores)) {
        expect(module.includes(`${store} }`)).toBe(name === inbox);
      }

      // The settings of prettier that the Nest CLI generates.
      const style = { parser: 'typescript', singleQuote: true, trailingComma: 'all' } as const;
      for (const file of tree.files.filter((name) => name.endsWith('.ts'))) {
        expect([file, await check(tree.readText(file), style)]).toEqual([file, true]);
      }

      const { dependencies, devDependencies = {}, scripts = {} } = manifestOf(tree);
      expect(Object.keys(dependencies)).toEqual([
        '@nestjs/config',
        '@nestjs/core',
        ...(console ? ['class-transformer', 'class-validator', 'nestjs-payments-console'] : []),
        ...(inbox === 'postgres' ? ['pg'] : []),
      ]);
      expect(Object.keys(devDependencies)).toEqual([
        ...(inbox === 'postgres' ? ['@types/pg'] : []),
        ...(emulator ? ['payments-emulator'] : []),
      ]);
      expect('payments:emulator' in scripts).toBe(emulator);
      expect(tree.exists('src/payments/console.guard.ts')).toBe(console);
      expect(tree.exists('.gitignore')).toBe(inbox === 'sqlite');
      expect(tree.exists('src/payments/payments.handler.spec.ts')).toBe(true);

      const before = contentOf(tree);
      expect(contentOf(await add(tree, options))).toEqual(before);
      expect(runner.tasks).toEqual([]);
    },
  );

  it('AP-17 .env.example names the variables that the module reads', async () => {
    const tree = await add(application(), { inbox: 'postgres', console: true });
    const names = Array.from(
      tree.readText('.env.example').matchAll(/^(\w+)=$/gm),
      ([, name]) => name!,
    );
    const missing = checkPaymentsEnvironment({}).map((fault) => fault.split(' ')[0]);
    expect(names).toEqual([...missing, 'DATABASE_URL', 'CONSOLE_PASSWORD']);
  });

  it('AP-17 nest add installs the major versions that fit NestJS 11, writes imports without the suffix .js, and configures Jest', async () => {
    const tree = await add(application(NEST_11), { console: true });
    const { dependencies, jest } = manifestOf(tree);
    expect(dependencies).toMatchObject({
      '@nestjs/config': expect.stringMatching(/^\^4/),
      'class-validator': expect.stringMatching(/^\^0\.14/),
    });
    const code = tree.files
      .filter((file) => file.endsWith('.ts'))
      .map((file) => tree.readText(file));
    expect(code.join('\n')).not.toContain(".js'");
    const page = await readFile(new URL('docs/testing.md', ROOT), 'utf8');
    const [, documented] = /^```json file=jest\.json\n(.*?)```/ms.exec(page)!;
    expect(jest).toEqual({ rootDir: 'src', ...JSON.parse(documented!) });
    expect(tree.readJson('test/jest-e2e.json')).toEqual(JSON.parse(documented!));
  });

  it('AP-17 nest add changes the application that the Nest CLI chose in a monorepo', async () => {
    const tree = application({
      'apps/other/src/main.ts': MAIN.replaceAll('AppModule', 'OtherModule').replace(
        '/app.',
        '/other.',
      ),
      'apps/other/src/other.module.ts': MODULE.replace('AppModule', 'OtherModule'),
    });
    await add(tree, { sourceRoot: 'apps/other/src' });
    expect(elementsOf(tree.readText('apps/other/src/other.module.ts'), 'imports')).toEqual([
      'ConfigModule',
      'PaymentsModule',
    ]);
    expect(tree.exists('apps/other/src/payments/payments.handler.ts')).toBe(true);
    expect(tree.readText('src/app.module.ts')).toBe(MODULE);
    // The second application shares the packages of the first, but loads .env itself.
    await add(tree);
    expect(elementsOf(tree.readText('src/app.module.ts'), 'imports')).toEqual([
      'ConfigModule',
      'PaymentsModule',
    ]);
  });

  it('AP-17 nest add keeps what an application already has', async () => {
    const own = {
      'package.json': JSON.stringify({
        ...MANIFEST,
        dependencies: { '@nestjs/config': '^11.0.0' },
        scripts: { 'payments:emulator': 'my own' },
      }),
      '.env.example': 'PORT=3000\n# PAYMENTS_BASE_URL=\nPAYMENTS_CLIENT_ID=shop',
      'src/orders/orders.module.ts': "import { ConfigModule } from '@nestjs/config';",
      'src/app.module.ts': `import { Module } from '@nestjs/common';
import { OrdersModule } from './orders.module.js';

// "@Module({ imports: [] })" in a comment is not a module.
@Module({
  imports: [
    OrdersModule, // orders
  ],
})
export class AppModule {}
`,
    };
    const tree = await add(application(own));
    expect(manifestOf(tree)).toMatchObject(JSON.parse(own['package.json']) as object);
    expect(tree.readText('.env.example')).toMatch(
      /^PORT=3000\n# PAYMENTS_BASE_URL=\nPAYMENTS_CLIENT_ID=shop\n#.*\nPAYMENTS_CLIENT_SECRET=\n#.*\nPAYMENTS_WEBHOOK_SECRET=\n$/,
    );
    const module = tree.readText('src/app.module.ts');
    expect(module).toContain('// "@Module({ imports: [] })" in a comment is not a module.');
    // The application uses @nestjs/config, so it loads its environment itself.
    expect(elementsOf(module, 'imports')).toEqual(['OrdersModule', 'PaymentsModule']);
    expect(module).toContain('    OrdersModule, // orders\n    PaymentsModule.');
    expect(elementsOf(module, 'providers')).toEqual(['PaymentsHandler']);
  });

  it('AP-17 nest add keeps CRLF line ends', async () => {
    const files = Object.entries({ 'package.json': '{\n}\n', 'src/app.module.ts': MODULE });
    const tree = await add(
      application(
        Object.fromEntries(
          files.map(([file, text]) => [file, text.replaceAll('\n', '\r\n')] as const),
        ),
      ),
    );
    for (const [file] of files) expect(tree.readText(file)).not.toMatch(/[^\r]\n/);
    expect(elementsOf(tree.readText('src/app.module.ts'), 'imports')).toHaveLength(2);
    expect(manifestOf(tree).scripts).toHaveProperty('payments:emulator');
  });

  it.each([
    ['imports on one line', 'imports: [A, B]', ['A', 'B']],
    ['a comma in a comment', 'imports: [\n    A /* first, of two */,\n  ]', ['A']],
    ['a comment instead of elements', 'imports: [\n    // none\n  ]', []],
    ['another object above', '...METADATA,\n  imports: [A]', ['A']],
    ['a quoted property', "'imports': [A]", ['A']],
    ['no imports', 'exports: []', []],
  ])('AP-17 nest add adds the modules to metadata with %s', async (_case, imports, before) => {
    const module = MODULE.replace('imports: []', imports);
    const code = (await add(application({ 'src/app.module.ts': module }))).readText(
      'src/app.module.ts',
    );
    const elements = elementsOf(code.replace("'imports'", 'imports'), 'imports');
    expect(elements).toEqual([...before, 'ConfigModule', 'PaymentsModule']);
  });

  it('AP-17 nest add imports no name twice', async () => {
    const module = `import { paymentsConfig } from 'nestjs-payments';\n${MODULE}`;
    const code = (await add(application({ 'src/app.module.ts': module }))).readText(
      'src/app.module.ts',
    );
    expect(code.match(/import .*\bpaymentsConfig\b/g)).toHaveLength(1);
    expect(code).toContain("import { PaymentsModule } from 'nestjs-payments';");
  });

  it('AP-17 nest add keeps the inbox of an application in a second run with another inbox', async () => {
    const tree = await add(application());
    const module = tree.readText('src/app.module.ts');
    await add(tree, { inbox: 'sqlite' });
    expect(tree.readText('src/app.module.ts')).toBe(module);
  });

  it.each([
    ['no main.ts', { 'src/main.ts': '' }, /src\/main\.ts must call NestFactory\.create\(\)/],
    [
      'imports that are not an array',
      { 'src/app.module.ts': MODULE.replace('imports: []', 'imports: IMPORTS') },
      /src\/app\.module\.ts: "imports" must be an array literal/,
    ],
    [
      'imports in a constant of that name',
      { 'src/app.module.ts': MODULE.replace('imports: []', 'imports') },
      /src\/app\.module\.ts: "imports" must be an array literal/,
    ],
    [
      'metadata that spread an object',
      { 'src/app.module.ts': MODULE.replace('imports: []', '...METADATA') },
      /src\/app\.module\.ts: "imports" must be an array literal/,
    ],
    [
      'metadata that are not an object',
      { 'src/app.module.ts': '@Module(METADATA) export class AppModule {}' },
      /src\/app\.module\.ts: .*@Module/,
    ],
  ])('AP-17 nest add names the cause for %s', async (_case, files, message) => {
    await expect(add(application(files))).rejects.toThrow(message);
  });
});

describe('nest generate --collection nestjs-payments handler', () => {
  const generate = (tree: UnitTestTree, options: object): Promise<UnitTestTree> =>
    runner.runSchematic('handler', options, tree);
  const ORDERS = { 'src/orders/orders.module.ts': MODULE.replace('AppModule', 'OrdersModule') };

  it('AP-17 nest generate adds a handler and its test to the nearest module', async () => {
    const tree = await generate(application(ORDERS), { name: 'orders' });
    const handler = tree.readText('src/orders/orders.handler.ts');
    expect(handler).toContain('class OrdersHandler');
    // Two handlers of one type need different names.
    expect(handler).toContain("@OnPaymentEvent('transaction.completed', { name: 'orders' })");
    expect(tree.readText('src/orders/orders.handler.spec.ts')).toContain("'./orders.handler.js'");
    const module = tree.readText('src/orders/orders.module.ts');
    expect(elementsOf(module, 'providers')).toEqual(['AppService', 'OrdersHandler']);
    expect(module).toContain("import { OrdersHandler } from './orders.handler.js';");
    expect(tree.readText('src/app.module.ts')).toBe(MODULE);
    await expect(generate(tree, { name: 'orders' })).rejects.toThrow('already exist');
  });

  it.each([
    [{ name: 'billing/late-orders' }, 'src/billing/late-orders/late-orders.handler'],
    [{ name: 'billing/late-orders', flat: true }, 'src/billing/late-orders.handler'],
    [{ name: 'late-orders', path: 'billing' }, 'src/billing/late-orders/late-orders.handler'],
  ])('AP-17 nest generate writes a handler for %p', async (options, file) => {
    const tree = await generate(application(), { ...options, spec: false });
    expect(tree.readText(`${file}.ts`)).toContain('class LateOrdersHandler');
    expect(tree.exists(`${file}.spec.ts`)).toBe(false);
    expect(tree.readText('src/app.module.ts')).toContain(
      `import { LateOrdersHandler } from '${file.replace('src', '.')}.js';`,
    );
  });

  it('AP-17 nest generate names the fix if there is no module', async () => {
    const tree = application();
    tree.delete('src/app.module.ts');
    await expect(generate(tree, { name: 'orders' })).rejects.toThrow('nest generate module orders');
  });
});
