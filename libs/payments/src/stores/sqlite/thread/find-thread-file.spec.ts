import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { resolveSqliteOptions } from '../sqlite-options.js';
import { entryPath, findThreadFile } from './client.js';

describe('the file of the SQLite thread', () => {
  it('the file of the SQLite thread is the entry in the package if the entry is a file of its own', () => {
    const file = resolve(
      '/app/node_modules/nestjs-payments/dist/stores/sqlite/thread/sqlite-thread.js',
    );
    expect(entryPath(pathToFileURL(file).href)).toBe(file);
  });

  it.each([
    [undefined, 'another file'],
    [pathToFileURL('/app/dist/main.mjs').href, 'main.mjs'],
  ])(
    'the file of the SQLite thread is rejected if a bundler merged the entry into %s',
    (url, name) => {
      expect(() => entryPath(url)).toThrow(
        `a bundler merged the worker thread of the SQLite inbox into ${name}. Bundle ` +
          '"nestjs-payments/sqlite/thread" as a second entry',
      );
    },
  );

  it('the file of the SQLite thread is the file of "threadPath", as a path or as a URL', async () => {
    const file = resolve('libs/payments/src/stores/sqlite/thread/find-thread-file.spec.ts');
    for (const threadPath of [file, pathToFileURL(file), pathToFileURL(file).href]) {
      const settings = resolveSqliteOptions({ file: 'inbox.db', threadPath });
      expect(await findThreadFile(settings.threadPath)).toBe(file);
    }
  });

  it('a missing file of "threadPath" is rejected, and the error names the option and the fix', async () => {
    await expect(findThreadFile(resolve('gone.js'))).rejects.toMatchObject({
      code: 'options_invalid',
      message: expect.stringMatching(/does not exist: .*gone\.js\. .*"sqliteInbox\.threadPath"/),
    });
  });
});
