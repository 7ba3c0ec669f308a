import { Module } from '@nestjs/common';
import { DatabaseModule } from '../database/database.module.js';
import { CheckoutService } from './checkout.service.js';
import { OrderPageController } from './order-page.controller.js';
import { OrdersController } from './orders.controller.js';
import { OrdersService } from './orders.service.js';

/** Orders: their API, their pages, and the checkout invoices. */
@Module({
  imports: [DatabaseModule],
  controllers: [OrdersController, OrderPageController],
  providers: [OrdersService, CheckoutService],
  exports: [OrdersService],
})
export class OrdersModule {}
