import { execFile } from 'node:child_process';
import { globSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** Folders of the packages that adapt an engine: all except the module, the console and the emulator. */
export const ENGINE_PACKAGES = globSync('libs/*/package.json', {
  cwd: join(import.meta.dirname, '..'),
})
  .map(dirname)
  .filter((folder) => !/\/(payments|console|emulator)$/.test(folder))
  .toSorted();

/** Folders of the packages that are released together, with one version. */
export const PACKAGES = ['libs/payments', 'libs/console', ...ENGINE_PACKAGES, 'libs/emulator'];

/** The fields of package.json that a release checks or sets. */
export interface Manifest {
  name: string;
  version?: string;
  homepage?: string;
  bugs?: { url: string };
  repository?: { type: string; url: string; directory?: string };
  peerDependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
}

/** The manifests of the root and of the released packages, and the changelog. */
export interface Workspace {
  readonly root: Manifest;
  readonly packages: ReadonlyMap<string, Manifest>;
  readonly changelog: string;
}

/** Reads the workspace in a folder. */
export async function readWorkspace(folder: string): Promise<Workspace> {
  const packages = new Map<string, Manifest>();
  for (const path of PACKAGES) packages.set(path, await readManifest(join(folder, path)));
  const changelog = await readFile(join(folder, 'CHANGELOG.md'), 'utf8');
  return { root: await readManifest(folder), packages, changelog };
}

/** Writes the manifests back. The changelog is written by hand only. */
export async function writeManifests(folder: string, workspace: Workspace): Promise<void> {
  for (const [path, manifest] of [['', workspace.root] as const, ...workspace.packages]) {
    await writeFile(
      join(folder, path, 'package.json'),
      `${JSON.stringify(manifest, undefined, 2)}\n`,
    );
  }
}

/** Writes the version that the module reports at run time. */
export async function writeVersion(folder: string, version: string): Promise<void> {
  const path = join(folder, 'libs/payments/src/runtime/version.ts');
  const source = await readFile(path, 'utf8');
  await writeFile(path, source.replace(/VERSION = '.*'/, `VERSION = '${version}'`));
}

/** Sets the version of every package, also in the dependencies of the packages on each other. */
export function setVersion(workspace: Workspace, version: string): void {
  const names = new Set([...workspace.packages.values()].map(({ name }) => name));
  for (const manifest of workspace.packages.values()) {
    manifest.version = version;
    for (const field of ['peerDependencies', 'devDependencies'] as const) {
      const dependencies = manifest[field];
      for (const name of Object.keys(dependencies ?? {})) {
        if (dependencies && names.has(name)) dependencies[name] = version;
      }
    }
  }
}

/** Sets the addresses of the repository in every package, from `owner/name`. */
export function setRepository(workspace: Workspace, repository: string): void {
  const address = `https://github.com/${repository}`;
  const url = `git+${address}.git`;
  workspace.root.repository = { type: 'git', url };
  for (const [directory, manifest] of workspace.packages) {
    manifest.homepage = `${address}#readme`;
    manifest.bugs = { url: `${address}/issues` };
    manifest.repository = { type: 'git', url, directory };
  }
}

/** `owner/name` of the repository of a package. */
export function repositoryOf({ repository }: Pick<Manifest, 'repository'>): string | undefined {
  return /github\.com\/([\w.-]+\/[\w.-]+)\.git$/.exec(repository?.url ?? '')?.[1];
}

/**
 * Everything that prevents a release of the workspace's version, as sentences with a fix.
 *
 * @param publishing whether the changelog must have a date for the version
 */
export function releaseProblems(workspace: Workspace, publishing: boolean): string[] {
  const problems: string[] = [];
  const versions = new Set([...workspace.packages.values()].map(({ version }) => version));
  const [version] = versions;
  if (versions.size !== 1 || version === undefined) {
    problems.push(
      `The packages have the versions ${[...versions].join(', ')}. Set one with "npm run release -- --version <version>".`,
    );
    return problems;
  }
  const expected = structuredClone(workspace);
  setVersion(expected, version);
  const repository = repositoryOf(workspace.root);
  if (repository === undefined) {
    problems.push('The root package.json has no "repository" on GitHub.');
  } else {
    setRepository(expected, repository);
  }
  for (const [path, manifest] of workspace.packages) {
    if (JSON.stringify(manifest) === JSON.stringify(expected.packages.get(path))) continue;
    problems.push(
      `${path}/package.json differs in its addresses, or in the version of a package of this repository. ` +
        'Set them with "npm run release -- --version <version> --repository <owner/name>".',
    );
  }
  const heading = workspace.changelog.split('\n').find((line) => line.startsWith(`## ${version} `));
  if (heading === undefined) {
    problems.push(`CHANGELOG.md has no section "## ${version} – <date>".`);
  } else if (publishing && !/– \d{4}-\d{2}-\d{2}$/.test(heading)) {
    problems.push(`CHANGELOG.md has no date for ${version}. Write "## ${version} – YYYY-MM-DD".`);
  }
  return problems;
}

/** Arguments of the `npm publish` of a package. npm would give a prerelease the dist-tag `latest`, or reject it. */
export function publishArguments(folder: string, { version = '' }: Manifest): string[] {
  const tag = version.includes('-') ? 'next' : 'latest';
  return ['publish', `./${folder}`, '--access', 'public', '--tag', tag];
}

/**
 * Whether the registry contains the version of a package.
 *
 * @param environment variables for npm, such as `npm_config_registry`
 * @throws if the registry does not answer this
 */
export async function isPublished(
  { name, version }: Manifest,
  environment: NodeJS.ProcessEnv = process.env,
): Promise<boolean> {
  const args = ['view', `${name}@${version}`, 'version', '--json'];
  const { failed, stdout, stderr } = await new Promise<
    Record<'stdout' | 'stderr', string> & { failed: boolean }
  >((done) =>
    execFile('npm', args, { env: environment }, (error, stdout, stderr) =>
      done({ failed: error !== null, stdout, stderr }),
    ),
  );
  if (!failed) return stdout.trim() !== '';
  if (/\bE404\b/.test(stdout + stderr)) return false;
  throw new Error(`"npm ${args.join(' ')}" failed: ${stderr.trim()}`);
}

async function readManifest(folder: string): Promise<Manifest> {
  return JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as Manifest;
}
