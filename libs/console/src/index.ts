/**
 * The console: a page for operators that shows the inbox and can redrive, skip and pause deliveries.
 *
 * @module nestjs-payments-console
 */
export { PaymentsConsoleModule } from './console.module.js';
export type {
  ConsoleGuard,
  ConsolePermission,
  ConsoleRuntime,
  PaymentsConsoleOptions,
} from './console-options.js';
export type { ConsoleRequest } from './console-request.js';
export { BasicAuthGuard } from './basic-auth.guard.js';
export type { BasicAuthOptions } from './basic-auth-options.js';
