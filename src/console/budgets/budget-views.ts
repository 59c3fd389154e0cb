import { BudgetPage } from "./budget.jsx";
import { BudgetAccountPage } from "./budget-account.jsx";
import { BudgetCards } from "./budgets.jsx";

/** The views of budgets. They are loaded when one of them is opened. */
export const budgetViews = { BudgetAccountPage, BudgetCards, BudgetPage } as const;
