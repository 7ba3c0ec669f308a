import { succeed } from '../support/processes/run-command.ts';

/** Prints the URL of every script that the process has loaded: ES modules, CommonJS modules and built-in modules. */
const REPORT = `
  const { Session } = process.getBuiltinModule('node:inspector');
  const session = new Session();
  session.connect();
  session.on('Debugger.scriptParsed', ({ params }) => params.url && console.log(params.url));
  session.post('Debugger.enable');`;

/**
 * Loads a module in a new process.
 *
 * @returns the names of the packages and `node:` modules that the process loaded with it.
 * @throws with the process's output if the module does not load.
 */
export async function loadedBy(
  specifier: string,
  how: 'import' | 'require',
  node: string,
  cwd: string,
): Promise<Set<string>> {
  const load = how === 'import' ? `await import('${specifier}');` : `require('${specifier}');`;
  const args = [
    `--input-type=${how === 'import' ? 'module' : 'commonjs'}`,
    '--eval',
    load + REPORT,
  ];
  const { stdout } = await succeed(node, args, { cwd, timeoutMs: 120_000 });
  const names = stdout
    .split('\n')
    .map((url) => /^node:(?!internal\/).*|(?<=.*\/node_modules\/)(?:@[^/]+\/)?[^/]+/.exec(url)?.[0])
    .filter((name) => name !== undefined);
  return new Set(names);
}
