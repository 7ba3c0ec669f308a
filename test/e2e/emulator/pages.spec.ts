import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { PaymentsEmulator } from 'payments-emulator';

const home = new URL('../../../libs/emulator/', import.meta.url);
let emulator: PaymentsEmulator;
let checkout: string;

beforeAll(async () => {
  emulator = await PaymentsEmulator.start();
  checkout = emulator.createCheckoutInvoice({ amount: 1, externalReference: 'x' }).checkoutUrl;
});
afterAll(() => emulator.close());

/** Requests a path with the headers of a browser. */
function open(path: string, headers: Record<string, string> = {}): Promise<Response> {
  const accept = 'text/html,application/xhtml+xml,*/*;q=0.8';
  return fetch(new URL(path, emulator.baseUrl), { headers: { accept, ...headers } });
}

const pages = () => ['/emulator', '/emulator/', '/emulator/stk', checkout];

describe("the emulator's pages", () => {
  it("the emulator's pages are served to browsers at /emulator, and JSON to programs", async () => {
    const page = await open('/emulator');
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(page.headers.get('vary')).toContain('accept');
    const program = await open('/emulator', { accept: 'application/json' });
    expect(await program.json()).toMatchObject({ emulator: 'payments-emulator' });
  });

  it("the emulator's pages are where the root address redirects to, with and without a control token", async () => {
    await using remote = await PaymentsEmulator.start({ host: '0.0.0.0' });
    for (const url of [emulator.baseUrl, emulator.productionBaseUrl, remote.baseUrl]) {
      const response = await fetch(url, { redirect: 'manual' });
      expect([response.status, response.headers.get('location')]).toEqual([302, '/emulator']);
    }
    expect((await fetch(remote.baseUrl)).status).toBe(401);
    const slash = await fetch(new URL('/emulator/?tab=faults', emulator.baseUrl), {
      redirect: 'manual',
    });
    expect([slash.status, slash.headers.get('location')]).toEqual([308, '/emulator?tab=faults']);
    expect((await open('/nothing')).status).toBe(404);
  });

  it("the emulator's pages show that this is an emulator and that no money moves", async () => {
    for (const path of pages()) {
      const text = await (await open(path)).text();
      expect(text).toContain('<strong>Emulator.</strong> Not the payments service: no money moves');
    }
  });

  it("the emulator's pages are sent with a policy against foreign content and framing", async () => {
    for (const path of pages()) {
      const { headers } = await open(path);
      const policy = headers.get('content-security-policy') ?? '';
      expect(policy).toMatch(/^default-src 'none'; /);
      expect(policy).toContain("frame-ancestors 'none'");
      expect(policy).toContain("base-uri 'none'");
      expect(policy).toContain("form-action 'self'");
      expect(policy).not.toMatch(/unsafe|https?:|\*/);
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(headers.get('cache-control')).toBe('no-store');
      expect(headers.get('referrer-policy')).toBe('same-origin');
    }
    expect((await open(checkout)).headers.get('content-security-policy')).not.toContain('script');
  });

  it("the emulator's pages allow the import map, their only inline script, by its hash", async () => {
    const page = await open('/emulator');
    const [, map = ''] = /<script type="importmap">(.*?)<\/script>/.exec(await page.text()) ?? [];
    const hash = createHash('sha256').update(map).digest('base64');
    expect(page.headers.get('content-security-policy')).toContain(
      `script-src 'self' 'sha256-${hash}'`,
    );
    const { imports } = JSON.parse(map) as { imports: Record<string, string> };
    for (const path of Object.values(imports)) {
      const file = await open(path);
      expect(file.status).toBe(200);
      expect(file.headers.get('content-type')).toBe('text/javascript; charset=utf-8');
    }
  });

  it("the emulator's pages serve all files of the folder and no others", async () => {
    const files = (await readdir(new URL('pages/', home))).filter((file) =>
      /\.(js|css)$/.test(file),
    );
    expect(files.length).toBeGreaterThan(5);
    for (const file of files) {
      expect([file, (await open(`/emulator/pages/${file}`)).status]).toEqual([file, 200]);
    }
    for (const path of ['tsconfig.json', 'none.js', '..%2fpackage.json', '%2e%2e/package.json']) {
      expect((await open(`/emulator/pages/${path}`)).status).toBe(404);
    }
  });

  it("the emulator's pages are not served to scripts of other origins", async () => {
    const foreign = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' };
    for (const path of [...pages(), '/emulator/pages/emulator-page.js', '/emulator/overview']) {
      const headers = { ...foreign, origin: 'https://evil.example' };
      expect((await open(path, headers)).status).toBe(403);
    }
  });

  it("the emulator's pages are all contained in the packed package", async () => {
    const { stdout } = await promisify(execFile)(
      'npm',
      ['pack', '--dry-run', '--json', '--ignore-scripts'],
      { cwd: fileURLToPath(home) },
    );
    const [packed] = Object.values(JSON.parse(stdout) as { files: { path: string }[] }[]);
    const paths = packed?.files.map(({ path }) => path) ?? [];
    for (const file of await readdir(new URL('pages/', home))) {
      expect(paths.includes(`pages/${file}`)).toBe(/\.(js|css)$/.test(file));
    }
  });
});
