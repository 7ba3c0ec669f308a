import { Module } from '@nestjs/common';
import { DatabaseModule } from '../database/database.module.js';
import { LedgerPageController } from './ledger-page.controller.js';
import { LedgerController } from './ledger.controller.js';

/** The ledger of recorded payments: its API and its page. */
@Module({
  imports: [DatabaseModule],
  controllers: [LedgerController, LedgerPageController],
})
export class LedgerModule {}
