import { accessSync, constants, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Module } from '@nestjs/common';
import { SettingsError, shopConfig } from '../shop-config.js';
import type { ShopSettings } from '../shop-config.js';
import { PostgresShopDatabase } from './postgres-shop-database.js';
import { ShopDatabase } from './shop-database.js';
import { SqliteShopDatabase } from './sqlite-shop-database.js';

/** Provides the {@link ShopDatabase}: PostgreSQL if `DATABASE_URL` is set, otherwise SQLite. */
@Module({
  providers: [{ provide: ShopDatabase, inject: [shopConfig.KEY], useFactory: openDatabase }],
  exports: [ShopDatabase],
})
export class DatabaseModule {}

/**
 * Opens the database that the settings select.
 *
 * @throws SettingsError if the database can't be opened.
 */
function openDatabase({ databaseUrl, dataFolder }: ShopSettings): Promise<ShopDatabase> {
  return databaseUrl === undefined ? openSqlite(dataFolder) : openPostgres(databaseUrl);
}

async function openSqlite(folder: string): Promise<ShopDatabase> {
  try {
    mkdirSync(folder, { recursive: true });
    accessSync(folder, constants.W_OK | constants.X_OK);
    return await SqliteShopDatabase.open(join(folder, 'shop.db'));
  } catch (error) {
    throw new SettingsError([
      `SHOP_DATA must be a folder in which the shop can write the file shop.db: ${reasonOf(error)}`,
    ]);
  }
}

async function openPostgres(url: string): Promise<ShopDatabase> {
  try {
    return await PostgresShopDatabase.open(url);
  } catch (error) {
    // The message does not contain the address, because an address may contain a password.
    throw new SettingsError([
      `DATABASE_URL must be the address of a PostgreSQL database that the shop can use: ${reasonOf(error)}`,
    ]);
  }
}

function reasonOf(error: unknown): string {
  // If a host has several addresses, Node throws an AggregateError without a message.
  const [first] = error instanceof AggregateError ? (error.errors as unknown[]) : [error];
  return first instanceof Error ? first.message : String(first);
}
