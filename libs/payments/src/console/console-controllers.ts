import { Controller, UseFilters, UseGuards, VERSION_NEUTRAL } from '@nestjs/common';
import type { Type } from '@nestjs/common';
import { ConsoleApi } from './console-api.js';
import { DataErrorFilter, RefusalFilter } from './console-errors.js';
import { ConsoleGate } from './console-gate.js';
import type { ResolvedConsoleOptions } from './console-options.js';
import { ConsolePage } from './console-page.js';

/**
 * The controllers of one registration: classes of its own, since Nest keeps path and guards on the class, and two
 * registrations must not write over each other's.
 */
export function consoleControllers({ path, guards }: ResolvedConsoleOptions): Type[] {
  const at = { path, version: VERSION_NEUTRAL } as const;

  @Controller(at)
  @UseGuards(ConsoleGate, ...guards)
  @UseFilters(RefusalFilter)
  class PaymentsConsolePage extends ConsolePage {}

  @Controller(at)
  @UseGuards(ConsoleGate, ...guards)
  @UseFilters(DataErrorFilter)
  class PaymentsConsoleApi extends ConsoleApi {}

  return [PaymentsConsolePage, PaymentsConsoleApi];
}
