import { render } from "preact";
import { refreshSession } from "../state/session.js";
import { ConsoleApp } from "./app.jsx";
import { listenToKeys } from "./keyboard.js";
import "uplot/dist/uPlot.min.css";
import "./console.css";

listenToKeys();
void refreshSession();
const place = document.querySelector("#app");
if (place) render(<ConsoleApp />, place);
