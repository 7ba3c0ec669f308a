import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  BundledApplication,
  installBundlers,
  showsConfigurations,
} from '../bundled-application.ts';
import type { Bundling } from '../bundled-application.ts';
import type { SmokePart } from '../smoke-part.ts';

const BUNDLERS = {
  esbuild: '0.28.2',
  webpack: '5.112.2',
  'webpack-cli': '7.3.1',
  'webpack-node-externals': '3.0.0',
};
const PEERS = {
  'class-transformer': '0.5.1',
  'class-validator': '0.15.1',
  'reflect-metadata': '0.2.2',
  rxjs: '7.8.2',
};
const NEST_12 = {
  '@nestjs/common': '12.5.1',
  '@nestjs/core': '12.5.1',
  '@nestjs/platform-express': '12.5.1',
};
const NEST_11 = {
  '@nestjs/common': '11.2.10',
  '@nestjs/core': '11.2.10',
  '@nestjs/platform-express': '11.2.10',
};

const WEBPACK = 'node_modules/webpack-cli/bin/cli.js';
const SELF_CONTAINED = 'webpack.config.cjs';
const BUNDLINGS: readonly Bundling[] = [
  {
    name: 'esbuild, ESM, self-contained',
    format: 'esm',
    selfContained: true,
    args: ['esbuild-esm.mjs'],
  },
  {
    name: 'esbuild, ESM, externals',
    format: 'esm',
    selfContained: false,
    args: ['esbuild-external.mjs', 'esm'],
  },
  {
    name: 'esbuild, CommonJS, self-contained',
    format: 'commonjs',
    selfContained: true,
    args: ['esbuild-commonjs.mjs'],
  },
  {
    name: 'esbuild, CommonJS, externals',
    format: 'commonjs',
    selfContained: false,
    args: ['esbuild-external.mjs', 'cjs'],
  },
  {
    name: 'webpack, self-contained',
    format: 'commonjs',
    selfContained: true,
    args: [WEBPACK, '--stats', 'errors-warnings', '--config', SELF_CONTAINED],
  },
  {
    name: 'webpack, externals',
    format: 'commonjs',
    selfContained: false,
    args: [WEBPACK, '--stats', 'errors-warnings', '--config', 'webpack-external.cjs'],
  },
];
/** Takes a minute, because webpack's minifier is slow. */
const MINIFIED: Bundling = {
  name: 'webpack, self-contained, minified',
  format: 'commonjs',
  selfContained: true,
  args: [
    WEBPACK,
    '--stats',
    'errors-warnings',
    '--config',
    SELF_CONTAINED,
    '--optimization-minimize',
  ],
};

/** Files of `fixtures/bundlers` that the guide shows. */
const SHOWN = ['esbuild-esm.mjs', SELF_CONTAINED] as const;

/** Applications that are bundled with and without their packages. */
export const part: SmokePart = {
  description: 'esbuild and webpack, self-contained and with externals, memory and SQLite inbox',
  async run({ root, payments, folder, all, node, oldestNode }, checks) {
    const nests = { 'Nest 12': NEST_12, ...(all && { 'Nest 11': NEST_11 }) };
    const bundlings = all ? [...BUNDLINGS, MINIFIED] : BUNDLINGS;
    const runners = all ? [node, await oldestNode()] : [node];
    for (const [nest, dependencies] of Object.entries(nests)) {
      const installed = join(folder, nest.replace(' ', '-'));
      await installBundlers(installed, payments, { ...BUNDLERS, ...PEERS, ...dependencies });
      for (const bundling of bundlings) {
        const title = `AP-04 ${bundling.name}, ${nest}`;
        let application: BundledApplication | undefined;
        await checks.that(`${title}: bundles without a warning about the package`, async () => {
          application = await BundledApplication.bundle(installed, bundling);
        });
        if (application === undefined) continue;
        for (const runner of runners) {
          for (const inbox of ['memory', 'sqlite'] as const) {
            await checks.that(`${title}, ${runner.name}, ${inbox} inbox: handles an event`, () =>
              application?.handles(runner.path, inbox),
            );
          }
        }
      }
    }
    await checks.that('AP-04 the guide shows the configurations that ran', async () => {
      const guide = await readFile(join(root, 'docs/bundlers.md'), 'utf8');
      const files = SHOWN.map(async (name) => {
        const file = join(root, 'test/smoke/fixtures/bundlers', name);
        return [name, await readFile(file, 'utf8')] as const;
      });
      showsConfigurations(guide, Object.fromEntries(await Promise.all(files)));
    });
  },
};
