// The thread of the SQLite inbox, with its files recorded too: a thread does not inherit `--import` from the application.
import './record-files.mjs';

await import('nestjs-payments/sqlite/thread');
