// A button that copies a listing. Without a script or a clipboard there is none.
for (const listing of navigator.clipboard ? document.querySelectorAll(".listing") : []) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(listing.querySelector("pre").textContent);
    button.textContent = "copied";
  });
  listing.prepend(button);
}
