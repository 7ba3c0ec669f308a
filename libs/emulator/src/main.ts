#!/usr/bin/env node
import { runCommand } from './command/command.runner.js';

// `payments-emulator --help | head`: whoever read has read enough. It ends as other commands do then,
// and leaves no emulator behind that nobody listens to.
const unread = new AbortController();
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    unread.abort();
  });
}

const result = await runCommand(process.argv.slice(2), {
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
});
if (typeof result === 'number') {
  process.exitCode = result;
} else {
  const close = (): void => void result.close();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, close);
  unread.signal.addEventListener('abort', close);
  if (unread.signal.aborted) close();
}
