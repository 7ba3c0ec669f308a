/** The globals that Jest and Vitest provide. */
export const TEST_GLOBALS = ['afterAll', 'beforeAll', 'describe', 'expect', 'it']
  .map((name) => `declare const ${name}: typeof import('@jest/globals').${name};`)
  .join('\n');

/** Files that `nest new` generates and that the quick start does not change. */
export const GENERATED_FILES = {
  'src/app.service.ts': `
    import { Injectable } from '@nestjs/common';
    @Injectable()
    export class AppService {}`,
  'src/app.controller.ts': `
    import { Controller } from '@nestjs/common';
    @Controller()
    export class AppController {}`,
  'src/main.ts': `
    import { NestFactory } from '@nestjs/core';
    import { AppModule } from './app.module.js';
    const app = await NestFactory.create(AppModule);
    await app.listen(process.env['PORT'] ?? 3000);`,
};

const EMULATOR_GLOBALS = `
declare const applicationUrl: string;
declare const emulator: import('payments-emulator').PaymentsEmulator;`;
const APP_MODULE = `export class AppModule {}`;

/** Files that the code of a page needs and the page does not show, by page and file. */
export const PAGE_CONTEXT: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'docs/getting-started.md': GENERATED_FILES,
  'docs/deploying.md': { 'app.module.ts': APP_MODULE },
  'docs/expectations.md': {
    'globals.d.ts': TEST_GLOBALS,
    'src/main.ts': GENERATED_FILES['src/main.ts'],
    // This class is in the code of the page Getting started.
    'src/orders.ts': 'export class Orders {}',
  },
  'docs/testing.md': { 'globals.d.ts': TEST_GLOBALS },
  'libs/emulator/README.md': { 'globals.d.ts': EMULATOR_GLOBALS },
};
