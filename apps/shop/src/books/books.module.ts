import { accessSync, constants, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Module } from '@nestjs/common';
import { ConfigModule } from '@nestjs/config';
import { SettingsError, shopConfig } from '../shop.config.js';
import type { ShopSettings } from '../shop.config.js';
import { Books } from './books.js';
import { PostgresBooks } from './postgres.books.js';
import { SqliteBooks } from './sqlite.books.js';

/** Provides the {@link Books}: on PostgreSQL where there is an address of one, otherwise on SQLite. */
@Module({
  imports: [ConfigModule.forFeature(shopConfig)],
  providers: [{ provide: Books, inject: [shopConfig.KEY], useFactory: openBooks }],
  exports: [Books],
})
export class BooksModule {}

/** @throws SettingsError where they can't be opened. */
function openBooks({ databaseUrl, dataFolder }: ShopSettings): Promise<Books> {
  return databaseUrl === undefined ? openFile(dataFolder) : openDatabase(databaseUrl);
}

async function openFile(folder: string): Promise<Books> {
  try {
    mkdirSync(folder, { recursive: true });
    accessSync(folder, constants.W_OK | constants.X_OK);
    return await SqliteBooks.open(join(folder, 'shop.db'));
  } catch (error) {
    throw new SettingsError([
      `SHOP_DATA must be a folder the shop can write its shop.db in: ${reasonOf(error)}`,
    ]);
  }
}

async function openDatabase(url: string): Promise<Books> {
  try {
    return await PostgresBooks.open(url);
  } catch (error) {
    // Without the address: it may hold a password.
    throw new SettingsError([
      `DATABASE_URL must lead to a PostgreSQL database the shop can use: ${reasonOf(error)}`,
    ]);
  }
}

function reasonOf(error: unknown): string {
  // Where a host has several addresses, there is an error for each, and none above them.
  const [first] = error instanceof AggregateError ? (error.errors as unknown[]) : [error];
  return first instanceof Error ? first.message : String(first);
}
