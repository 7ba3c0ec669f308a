import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { environment, npm } from '../support/processes/run-command.ts';

/**
 * npm ignores versions that were published after this day, so generated version ranges resolve to the same versions in
 * every run.
 */
export const REGISTRY_DAY = '2026-11-20';

/** A pinned `nest new`. */
export interface NestGenerator {
  readonly name: string;
  /** Exact versions of `@nestjs/cli` and `@nestjs/schematics`. */
  readonly cli: string;
  readonly schematics: string;
  /** Values that the generator writes: `module` of tsconfig.json and `type` of package.json. */
  readonly module: 'commonjs' | 'nodenext';
  readonly type: 'commonjs' | 'module';
  /** Major of Jest that the application tests with; Vitest if there is none. */
  readonly jest?: number;
  /** Majors of the packages that the README installs, if not the newest. */
  readonly majors: Readonly<Record<string, string>>;
  /** Builders of `nest build`, and the packages that each needs. */
  readonly builders: Readonly<Record<string, readonly string[]>>;
}

const SWC = ['@swc/cli@0.8', '@swc/core@1'];

export const NEST_11: NestGenerator = {
  name: '@nestjs/cli 11, nodenext',
  cli: '11.0.24',
  schematics: '11.1.0',
  module: 'nodenext',
  type: 'commonjs',
  jest: 30,
  majors: { '@nestjs/config': '4', '@nestjs/platform-fastify': '11' },
  builders: { tsc: [], swc: SWC, webpack: [] },
};

/** The last version that writes `module: commonjs`. */
export const NEST_11_COMMONJS: NestGenerator = {
  ...NEST_11,
  name: '@nestjs/cli 11, commonjs',
  cli: '11.0.5',
  schematics: '11.0.5',
  module: 'commonjs',
  jest: 29,
};

export const NEST_12: NestGenerator = {
  name: '@nestjs/cli 12',
  cli: '12.0.8',
  schematics: '12.0.6',
  module: 'nodenext',
  type: 'module',
  majors: {},
  // The webpack builder of Nest 12 rejects ES modules and recommends rspack.
  builders: {
    tsc: [],
    swc: SWC,
    rspack: ['@rspack/core@2', 'webpack-node-externals@3', 'tsconfig-paths-webpack-plugin@4'],
  },
};

/** The environment of a generated application: `node` first in `PATH`, and no package newer than {@link REGISTRY_DAY}. */
export function generatedEnvironment(node?: string): NodeJS.ProcessEnv {
  return { ...environment(node), npm_config_before: REGISTRY_DAY, NEST_TELEMETRY_DISABLED: '1' };
}

/**
 * Runs `nest new` without installing packages.
 *
 * @returns the folder of the application.
 * @throws if the generator writes another `module` or `type` than its description.
 */
export async function generate(generator: NestGenerator, folder: string): Promise<string> {
  const { cli, schematics, module, type } = generator;
  const packages = [`@nestjs/cli@${cli}`, `@nestjs/schematics@${schematics}`];
  const command = ['nest', 'new', 'app', '--skip-install', '--skip-git', '--package-manager=npm'];
  const args = ['exec', '--yes', ...packages.map((name) => `--package=${name}`), '--', ...command];
  await npm(args, folder, generatedEnvironment());
  const app = join(folder, 'app');
  const manifest = await readJson<{ type?: string }>(join(app, 'package.json'));
  const tsconfig = await readJson<{ compilerOptions: { module: string } }>(
    join(app, 'tsconfig.json'),
  );
  const written = [tsconfig.compilerOptions.module, manifest.type ?? 'commonjs'];
  if (written.join() !== [module, type].join()) {
    throw new Error(`it generated module and type ${written.join()}, not ${module},${type}`);
  }
  return app;
}

/** Reads a JSON file without comments. */
export async function readJson<T>(path: string): Promise<T> {
  return JSON.parse(await readFile(path, 'utf8')) as T;
}
