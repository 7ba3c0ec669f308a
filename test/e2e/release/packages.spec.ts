import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import {
  isPublished,
  publishArguments,
  readWorkspace,
  releaseProblems,
  setRepository,
  setVersion,
  writeVersion,
} from '../../../release/workspace.ts';
import type { Workspace } from '../../../release/workspace.ts';
import { VERSION } from '../../../libs/payments/dist/runtime/version.js';

const CONSOLE = 'libs/console';

describe('The release check', () => {
  let workspace: Workspace;
  beforeEach(async () => {
    const read = await readWorkspace(resolve(import.meta.dirname, '../../..'));
    workspace = { ...read, changelog: '# Changelog\n\n## 1.2.3 – 2026-01-31\n' };
    setVersion(workspace, '1.2.3');
  });

  it('the release check accepts the manifests of the repository as they are', async () => {
    const read = await readWorkspace(resolve(import.meta.dirname, '../../..'));
    expect(releaseProblems(read, false)).toEqual([]);
  });

  it('the release sets the version that the module reports at run time', async () => {
    const root = resolve(import.meta.dirname, '../../..');
    const { packages } = await readWorkspace(root);
    expect(VERSION).toBe(packages.get('libs/payments')!.version);
    const file = 'libs/payments/src/runtime/version.ts';
    const folder = mkdtempSync(join(tmpdir(), 'payments-release-'));
    try {
      mkdirSync(join(folder, dirname(file)), { recursive: true });
      cpSync(join(root, file), join(folder, file));
      await writeVersion(folder, '1.2.3');
      expect(readFileSync(join(folder, file), 'utf8')).toContain("VERSION = '1.2.3';");
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('the release check accepts packages of one version that has a section and a date in the changelog', () => {
    expect(releaseProblems(workspace, true)).toEqual([]);
  });

  it('the release check rejects packages with different versions', () => {
    const manifest = workspace.packages.get(CONSOLE);
    if (manifest) manifest.version = '1.2.4';
    expect(releaseProblems(workspace, false)).toEqual([
      expect.stringContaining('The packages have the versions 1.2.3, 1.2.4.'),
    ]);
  });

  it('the release check rejects a package that requires another version of a package of this repository', () => {
    const manifest = workspace.packages.get(CONSOLE);
    if (manifest?.peerDependencies) manifest.peerDependencies['nestjs-payments'] = '1.2.2';
    expect(releaseProblems(workspace, false)).toEqual([
      expect.stringContaining('libs/console/package.json differs'),
    ]);
  });

  it('the release check rejects a package whose repository differs from the repository of the root package', () => {
    const { homepage } = workspace.packages.get(CONSOLE) ?? {};
    setRepository(workspace, 'acme/payments');
    const manifest = workspace.packages.get(CONSOLE);
    if (manifest && homepage !== undefined) manifest.homepage = homepage;
    expect(releaseProblems(workspace, false)).toEqual([
      expect.stringContaining('libs/console/package.json differs'),
    ]);
  });

  it('the release check rejects a version without a section in the changelog', () => {
    expect(releaseProblems({ ...workspace, changelog: '# Changelog\n' }, false)).toEqual([
      'CHANGELOG.md has no section "## 1.2.3 – <date>".',
    ]);
  });

  it('the release check rejects the publication of a version without a date in the changelog', () => {
    const changelog = '## 1.2.3 – unreleased\n';
    expect(releaseProblems({ ...workspace, changelog }, false)).toEqual([]);
    expect(releaseProblems({ ...workspace, changelog }, true)).toEqual([
      'CHANGELOG.md has no date for 1.2.3. Write "## 1.2.3 – YYYY-MM-DD".',
    ]);
  });
});

describe('npm publish of a release', () => {
  it('a release is published with the dist-tag latest', () => {
    expect(publishArguments(CONSOLE, { name: 'a', version: '1.2.3' }).slice(-2)).toEqual([
      '--tag',
      'latest',
    ]);
  });

  it('a prerelease is published with the dist-tag next', () => {
    expect(publishArguments(CONSOLE, { name: 'a', version: '1.2.3-beta.1' }).slice(-2)).toEqual([
      '--tag',
      'next',
    ]);
  });
});

describe('A release that continues after a failure', () => {
  const registry = createServer((request, response) => {
    if (request.url === '/published') {
      const versions = { '1.2.2': { name: 'published', version: '1.2.2' } };
      response.end(
        JSON.stringify({ name: 'published', 'dist-tags': { latest: '1.2.2' }, versions }),
      );
    } else {
      response.statusCode = request.url === '/missing' ? 404 : 401;
      response.end('{}');
    }
  });
  let environment: NodeJS.ProcessEnv;
  beforeAll(async () => {
    await new Promise<void>((listening) => registry.listen(0, '127.0.0.1', listening));
    const { port } = registry.address() as AddressInfo;
    environment = { ...process.env, npm_config_registry: `http://127.0.0.1:${port}/` };
  });
  afterAll(() => void registry.close());

  it('the release skips a version that the registry contains', async () => {
    await expect(isPublished({ name: 'published', version: '1.2.2' }, environment)).resolves.toBe(
      true,
    );
  });

  it.each([
    { name: 'published', version: '1.2.3' },
    { name: 'missing', version: '1.2.3' },
  ])(
    'the release publishes $name $version, which the registry does not contain',
    async (manifest) => {
      await expect(isPublished(manifest, environment)).resolves.toBe(false);
    },
  );

  it('the release fails if the registry does not report whether it contains a version', async () => {
    await expect(isPublished({ name: 'private', version: '1.2.3' }, environment)).rejects.toThrow(
      '"npm view private@1.2.3 version --json" failed',
    );
  });
});
