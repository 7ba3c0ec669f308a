import { Module } from '@nestjs/common';
import { OrdersModule } from '../orders/orders.module.js';
import { CatalogueController } from './catalogue.controller.js';

@Module({ imports: [OrdersModule], controllers: [CatalogueController] })
export class CatalogueModule {}
